/* Collectives that CAUs can carry out, and those that they leave to messages: rank 0 prints one
 * line per part, and the lines are the same over any transport. Floating-point operands are whole
 * numbers, so that no order of adding them matters. Argument: how many communicators to make. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* By messages of its own, so that it does not depend on what it judges. */
static void Say(const char* part, uint64_t hash) {
  if (rank != 0) {
    MPI_Send(&hash, 1, MPI_UINT64_T, 0, 99, MPI_COMM_WORLD);
    return;
  }
  for (int r = 1; r < size; ++r) {
    uint64_t other = 0;
    MPI_Recv(&other, 1, MPI_UINT64_T, r, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    hash = hash * 31 + other;
  }
  printf("%s %016llx\n", part, (unsigned long long)hash);
}

#define REDUCTIONS(name, ctype, mtype, ...)                                              \
  static uint64_t name(MPI_Comm comm) {                                                  \
    static const int kCounts[] = {1, 3, 8, 16, 100, 200, 5000};                          \
    const MPI_Op ops[] = {__VA_ARGS__};                                                  \
    uint64_t h = 1;                                                                      \
    int me, all;                                                                         \
    MPI_Comm_rank(comm, &me), MPI_Comm_size(comm, &all);                                 \
    for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); ++o) {                            \
      for (size_t c = 0; c < sizeof(kCounts) / sizeof(*kCounts); ++c) {                  \
        const int n = kCounts[c], root = (int)(o + c) % all;                             \
        ctype* mine = malloc(sizeof(ctype) * (size_t)n);                                 \
        ctype* got = calloc((size_t)n, sizeof(ctype));                                   \
        for (int i = 0; i < n; ++i) mine[i] = (ctype)((me + 2) * (i % 7 + 1) % 5 + 1);   \
        MPI_Allreduce(mine, got, n, mtype, ops[o], comm);                                \
        h = Mix(h, got, sizeof(ctype) * (size_t)n);                                      \
        MPI_Reduce(mine, got, n, mtype, ops[o], root, comm);                             \
        if (me == root) h = Mix(h, got, sizeof(ctype) * (size_t)n);                      \
        MPI_Allreduce(MPI_IN_PLACE, mine, n, mtype, ops[o], comm);                       \
        h = Mix(h, mine, sizeof(ctype) * (size_t)n);                                     \
        free(mine), free(got);                                                           \
      }                                                                                  \
    }                                                                                    \
    return h;                                                                            \
  }

REDUCTIONS(Ints, int, MPI_INT, MPI_SUM, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_PROD,
           MPI_LAND)
REDUCTIONS(Longs, long, MPI_LONG, MPI_SUM, MPI_MAX, MPI_BXOR)
REDUCTIONS(Unsigneds, unsigned, MPI_UNSIGNED, MPI_SUM, MPI_MIN, MPI_BOR)
REDUCTIONS(Floats, float, MPI_FLOAT, MPI_SUM, MPI_MIN, MPI_MAX)
REDUCTIONS(Doubles, double, MPI_DOUBLE, MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD)
REDUCTIONS(Shorts, short, MPI_SHORT, MPI_SUM, MPI_MAX)

static void Larger(void* in, void* into, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i)
    if (((int*)in)[i] > ((int*)into)[i]) ((int*)into)[i] = ((int*)in)[i];
}

static uint64_t OwnOperation(void) {
  MPI_Op op;
  int mine = rank * 7 % 5, got = 0;
  MPI_Op_create(Larger, 1, &op);
  MPI_Allreduce(&mine, &got, 1, MPI_INT, op, MPI_COMM_WORLD);
  MPI_Op_free(&op);
  return Mix(2, &got, sizeof(got));
}

static uint64_t Broadcasts(void) { /* equal bytes by different types */
  uint64_t h = 3;
  MPI_Datatype every_second;
  MPI_Type_vector(8, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  for (int root = 0; root < size; ++root) {
    for (int bytes = 0; bytes <= 2048; bytes += bytes < 100 ? 33 : 461) {
      unsigned char data[4096];
      memset(data, rank == root ? root + bytes : 255, sizeof(data));
      MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
      h = Mix(h, data, (size_t)bytes);
    }
    int values[16];
    for (int i = 0; i < 16; ++i) values[i] = rank == root ? root * 100 + i : -1;
    if (rank == root) {
      MPI_Bcast(values, 8, MPI_INT, root, MPI_COMM_WORLD);
      h = Mix(h, values, sizeof(int) * 8);
    } else {
      MPI_Bcast(values, 1, every_second, root, MPI_COMM_WORLD);
      for (int i = 0; i < 8; ++i) h = Mix(h, &values[2 * i], sizeof(int));
    }
  }
  MPI_Type_free(&every_second);
  return h;
}

/* More communicators than a hub has trees, all at once, and again after they were given back. */
static uint64_t Communicators(int count) {
  uint64_t h = 4;
  MPI_Comm* comms = malloc(sizeof(MPI_Comm) * (size_t)(count + 1));
  for (int again = 0; again < 2; ++again) {
    for (int i = 0; i < count; ++i) {
      int sum = 0;
      MPI_Comm_split(MPI_COMM_WORLD, (rank + i) % 2, i % 3 == 0 ? -rank : rank, &comms[i]);
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
      h = Mix(h, &sum, sizeof(sum));
    }
    for (int i = 0; i < count; ++i) {
      int value = rank + i;
      MPI_Bcast(&value, 1, MPI_INT, 0, comms[i]);
      h = Mix(h, &value, sizeof(value));
      MPI_Barrier(comms[i]);
      MPI_Comm_free(&comms[i]);
    }
  }
  free(comms);
  return h;
}

/* Nonblocking collectives need the progress of ranks that are in blocking ones. */
static uint64_t Overlap(void) {
  uint64_t h = 5;
  for (int i = 0; i < 20; ++i) {
    MPI_Request request;
    int value = rank == i % size ? i : -1, sum = 0;
    MPI_Ibcast(&value, 1, MPI_INT, i % size, MPI_COMM_WORLD, &request);
    if ((rank + i) % 2 == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if ((rank + i) % 2 != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    h = Mix(h, &value, sizeof(value));
    h = Mix(h, &sum, sizeof(sum));
  }
  return h;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm backwards;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &backwards);
  Say("ints", Ints(MPI_COMM_WORLD));
  Say("longs", Longs(MPI_COMM_WORLD));
  Say("unsigneds", Unsigneds(backwards));
  Say("floats", Floats(MPI_COMM_WORLD));
  Say("doubles", Doubles(backwards));
  Say("shorts", Shorts(MPI_COMM_WORLD));
  Say("own operation", OwnOperation());
  Say("broadcasts", Broadcasts());
  Say("communicators", Communicators(argc > 1 ? atoi(argv[1]) : 3));
  Say("overlap", Overlap());
  MPI_Comm_free(&backwards);
  MPI_Finalize();
  return 0;
}
