/* Sums over all ranks until a file exists: allreduce_loop FILE. Rank 0 prints its process number
 * after the first sum, and at the end whether every sum was right. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank, size, wrong = 0, going = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; going; ++i) {
    long mine[64], sum[64];
    for (int k = 0; k < 64; ++k) mine[k] = (long)rank * k + i;
    MPI_Allreduce(mine, sum, 64, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < 64; ++k) wrong += sum[k] != (long)size * (size - 1) / 2 * k + (long)size * i;
    if (rank == 0 && i == 0) printf("%d\n", (int)getpid()), fflush(stdout);
    if (rank == 0 && access(argv[1], F_OK) == 0) going = 0;
    MPI_Bcast(&going, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", wrong == 0 ? "all sums are right" : "WRONG sums");
  MPI_Finalize();
  return wrong != 0;
}
