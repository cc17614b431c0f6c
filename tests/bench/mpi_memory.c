/* What MPI adds to a rank's memory, in KiB, the largest of all ranks: its proportional set size after
 * messages between all pairs, less that before MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long ProportionalKib(void) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) abort();
  while (kib < 0 && fgets(line, sizeof line, file) != NULL) sscanf(line, "Pss: %ld kB", &kib);
  fclose(file);
  return kib;
}

int main(int argc, char** argv) {
  int rank, size;
  const long before = ProportionalKib();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  enum { kWords = 128 };
  long* const out = calloc((size_t)size * kWords, sizeof *out);
  long* const in = calloc((size_t)size * kWords, sizeof *in);
  MPI_Alltoall(out, kWords, MPI_LONG, in, kWords, MPI_LONG, MPI_COMM_WORLD);
  free(out);
  free(in);
  long added = ProportionalKib() - before, most = 0;
  MPI_Reduce(&added, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD); /* all are there while they count what they share */
  if (rank == 0) printf("%ld\n", most);
  MPI_Finalize();
  return 0;
}
