/* What programs do with MPI, each part with a result that does not depend on the network: rank 0
 * prints one line per part, and the lines are the same over any transport. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* One line, with the sum over ranks of each rank's hash. */
static void Say(const char* part, uint64_t hash) {
  uint64_t sum = 0;
  hash = hash * (uint64_t)(2 * rank + 1);
  MPI_Reduce(&hash, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s %016llx\n", part, (unsigned long long)sum);
}

static void Fill(unsigned char* data, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)((i * 31 + seed * 17) >> 2);
}

static uint64_t Sizes(void) {
  static const size_t kSizes[] = {0,    1,     8,     95,    96,     127,    128,    2016,
                                  2017, 4000,  16384, 16385, 32768, 32769, 100000, 3000000};
  uint64_t h = 1;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(*kSizes); ++i) {
    unsigned char* out = malloc(kSizes[i] + 1);
    unsigned char* in = calloc(kSizes[i] + 1, 1);
    MPI_Request requests[2];
    Fill(out, kSizes[i], (unsigned)(rank + (int)i));
    MPI_Irecv(in, (int)kSizes[i], MPI_BYTE, from, (int)i, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int)kSizes[i], MPI_BYTE, to, (int)i, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    h = Mix(h, in, kSizes[i]);
    free(out), free(in);
  }
  return h;
}

static uint64_t Order(void) { /* messages of one pair and tag do not overtake each other */
  uint64_t h = 2;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  enum { kCount = 60 };
  static char out[kCount][40000], in[40000];
  MPI_Request requests[kCount];
  for (int i = 0; i < kCount; ++i) {
    const int bytes = i % 3 == 0 ? 4 : i % 3 == 1 ? 5000 : 40000;
    memset(out[i], i, (size_t)bytes);
    MPI_Isend(out[i], bytes, MPI_CHAR, to, 5, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < kCount; ++i) {
    MPI_Status status;
    int count = 0;
    MPI_Recv(in, sizeof(in), MPI_CHAR, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &count);
    h = Mix(h, &count, sizeof(count));
    h = Mix(h, in, (size_t)count);
  }
  MPI_Waitall(kCount, requests, MPI_STATUSES_IGNORE);
  return h;
}

static uint64_t Probes(void) {
  uint64_t h = 3;
  for (int i = 1; i < size; ++i) {
    if (rank == i) {
      int values[64];
      for (int k = 0; k < 64; ++k) values[k] = k * rank;
      MPI_Send(values, rank % 64, MPI_INT, 0, 100 + rank, MPI_COMM_WORLD);
    }
    if (rank == 0) {
      MPI_Status status;
      MPI_Message message;
      int values[64] = {0}, count = 0, flag = 0;
      if (i % 3 == 0) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Recv(values, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                 &status);
      } else if (i % 3 == 1) {
        while (!flag) MPI_Iprobe(i, 100 + i, MPI_COMM_WORLD, &flag, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Recv(values, count, MPI_INT, i, 100 + i, MPI_COMM_WORLD, &status);
      } else {
        MPI_Mprobe(MPI_ANY_SOURCE, 100 + i, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_Mrecv(values, count, MPI_INT, &message, &status);
      }
      h = Mix(h, &count, sizeof(count));
      h = Mix(h, values, sizeof(values));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return h;
}

static uint64_t Requests(void) { /* persistent, synchronous, any, test, cancel */
  uint64_t h = 4;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  int out = rank, in = -1, flag = 0, index = 0;
  MPI_Request requests[3];
  MPI_Send_init(&out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[1]);
  for (int i = 0; i < 10; ++i) {
    out = rank * 100 + i;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    h = Mix(h, &in, sizeof(in));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Issend(&out, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[1]);
  while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
  h = Mix(h, &in, sizeof(in));
  MPI_Irecv(&in, 1, MPI_INT, from, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&flag, 1, MPI_INT, from, 4, MPI_COMM_WORLD, &requests[1]);
  MPI_Ssend(&out, 0, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
  MPI_Send(&out, 1, MPI_INT, to, 4, MPI_COMM_WORLD);
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  h = Mix(h, &index, sizeof(index));
  MPI_Status status;
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], &status);
  MPI_Test_cancelled(&status, &flag);
  return Mix(h, &flag, sizeof(flag));
}

static uint64_t Types(void) {
  uint64_t h = 5;
  double matrix[20][20], got[20][20] = {{0}};
  MPI_Datatype column;
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  for (int i = 0; i < 400; ++i) matrix[i / 20][i % 20] = i * 1.5 + rank;
  MPI_Type_vector(20, 3, 20, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Sendrecv(&matrix[0][4], 1, column, to, 6, &got[0][9], 1, column, from, 6, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
  return Mix(h, got, sizeof(got));
}

static uint64_t Truncation(void) {
  uint64_t h = 6;
  char data[100] = "more than there is room for";
  if (size < 2 || rank > 1) return h;
  if (rank == 1) MPI_Send(data, 100, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
  if (rank == 0) {
    int kind = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const int error = MPI_Recv(data, 10, MPI_CHAR, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(error, &kind);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    kind = kind == MPI_ERR_TRUNCATE;
    h = Mix(h, &kind, sizeof(kind));
  }
  return h;
}

static uint64_t Communicators(void) {
  uint64_t h = 7;
  MPI_Comm half, grid, between;
  int sum = 0, value = rank, coordinates[2], dimensions[2] = {0, 0}, periods[2] = {1, 0};
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, half);
  h = Mix(h, &sum, sizeof(sum));
  if (size > 1) {
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? (size - 1) / 2 * 2
                                                            : (size - 2) / 2 * 2 + 1, 8, &between);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_MAX, between);
    h = Mix(h, &sum, sizeof(sum));
    MPI_Comm_free(&between);
  }
  MPI_Comm_free(&half);
  MPI_Dims_create(size, 2, dimensions);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periods, 1, &grid);
  MPI_Cart_coords(grid, rank, 2, coordinates);
  for (int direction = 0; direction < 2; ++direction) {
    int before, after, in = -1;
    MPI_Cart_shift(grid, direction, 1, &before, &after);
    MPI_Sendrecv(coordinates, 1, MPI_INT, after, 9, &in, 1, MPI_INT, before, 9, grid,
                 MPI_STATUS_IGNORE);
    h = Mix(h, &in, sizeof(in));
  }
  MPI_Comm_free(&grid);
  return h;
}

static uint64_t Collectives(void) {
  uint64_t h = 8;
  const int kCounts[] = {1, 100, 5000};
  for (int c = 0; c < 3; ++c) {
    const int n = kCounts[c];
    int* a = malloc(sizeof(int) * (size_t)(n * size));
    int* b = calloc((size_t)(n * size), sizeof(int));
    MPI_Request request;
    for (int i = 0; i < n * size; ++i) a[i] = i * (rank + 1);
    MPI_Bcast(a, n, MPI_INT, size - 1, MPI_COMM_WORLD);
    h = Mix(h, a, sizeof(int) * (size_t)n);
    MPI_Ibcast(a, n, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
    h = Mix(h, b, sizeof(int) * (size_t)(n * size));
    MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
    h = Mix(h, b, sizeof(int) * (size_t)(n * size));
    MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Scan(a, b + n * (size - 1), n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    h = Mix(h, b, sizeof(int) * (size_t)(n * size));
    MPI_Reduce_scatter_block(a, b, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    h = Mix(h, b, sizeof(int) * (size_t)n);
    free(a), free(b);
  }
  return h;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Say("sizes", Sizes());
  Say("order", Order());
  Say("probes", Probes());
  Say("requests", Requests());
  Say("types", Types());
  Say("truncation", Truncation());
  Say("communicators", Communicators());
  Say("collectives", Collectives());
  MPI_Finalize();
  return 0;
}
