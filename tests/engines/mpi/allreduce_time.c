/* Time of an allreduce: allreduce_time [BYTES [CALLS]] prints ranks and microseconds, as the program
 * reads its clock. What an MPI user writes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size;
  double mine[128] = {1}, sum[128];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int doubles = (argc > 1 ? atoi(argv[1]) : 8) / 8, calls = argc > 2 ? atoi(argv[2]) : 20;
  MPI_Allreduce(mine, sum, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i)
    MPI_Allreduce(mine, sum, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double each = (MPI_Wtime() - begin) / calls;
  double slowest = 0;
  MPI_Reduce(&each, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %d B: %.3f us\n", size, doubles * 8, slowest * 1e6);
  MPI_Finalize();
  return sum[0] != size;
}
