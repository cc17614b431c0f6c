/* Two ranks: one tests for a message in a loop and sends one for each test in vain; the other answers
 * each third of these. Who finds what depends on the virtual times of all tests. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTick = 1, kEnd = 2, kAnswer = 3, kTicksPerAnswer = 3 };

static long test_in_vain(int rounds) {
  long ticks = 0;
  for (int i = 0; i < rounds; ++i) {
    long answer = 0;
    int found = 0;
    MPI_Request request;
    MPI_Irecv(&answer, 1, MPI_LONG, 1, kAnswer, MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &found, MPI_STATUS_IGNORE); !found;
         MPI_Test(&request, &found, MPI_STATUS_IGNORE)) {
      ++ticks;
      MPI_Send(&ticks, 1, MPI_LONG, 1, kTick, MPI_COMM_WORLD);
    }
    if (answer != i) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Send(&ticks, 1, MPI_LONG, 1, kEnd, MPI_COMM_WORLD);
  return ticks;
}

static long answer_some(void) {
  long seen = 0, answers = 0, tick = 0;
  MPI_Status status;
  for (;;) {
    MPI_Recv(&tick, 1, MPI_LONG, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    if (status.MPI_TAG == kEnd) return seen == tick ? answers : -1;
    if (++seen % kTicksPerAnswer != 0) continue;
    MPI_Send(&answers, 1, MPI_LONG, 0, kAnswer, MPI_COMM_WORLD);
    ++answers;
  }
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    printf("%ld tests in vain\n", test_in_vain(argc > 1 ? atoi(argv[1]) : 100));
  } else if (rank == 1 && answer_some() < 0) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
