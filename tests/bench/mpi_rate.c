/* Messages of 8 bytes per second of wall time: pairs of ranks send one to and fro, mpi_rate ROUNDS.
 * The clock is read by a system call, because calls of libraries have virtual time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double Wall(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  int rank, size;
  long word = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 1 ? atoi(argv[1]) : 1000, peer = rank ^ 1;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = Wall();
  for (int i = 0; i < rounds; ++i) {
    if (rank % 2 == 0) MPI_Send(&word, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(&word, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2 != 0) MPI_Send(&word, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%.0f\n", rounds * (double)size / (Wall() - begin));
  MPI_Finalize();
  return 0;
}
