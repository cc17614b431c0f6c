"""What mpi4py users do: a reduction of numbers, a gather of pickled objects, a probe of what comes
from anybody. Rank 0 prints what it got, which is the same over any transport."""

import sys

from mpi4py import MPI


def say(line):
    """In one write, so that lines of ranks do not mix even if Python does not buffer them."""
    sys.stdout.write(f"{line}\n")


comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
began = MPI.Wtime()

say(f"rank {rank}: {comm.allreduce(rank + 1)}, {comm.allreduce(rank * 0.5, op=MPI.MAX)}")
everything = comm.gather({"rank": rank, "squares": [i * i for i in range(rank * 400)]}, root=0)
if rank > 0:
    comm.send("x" * (1 << (4 * rank)), dest=0, tag=rank)
else:
    say([(one["rank"], len(one["squares"]), sum(one["squares"])) for one in everything])
    lengths = {}
    for _ in range(size - 1):
        status = MPI.Status()
        comm.probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        source = status.Get_source()
        lengths[source] = (status.Get_tag(), len(comm.recv(source=source, tag=status.Get_tag())))
    say(sorted(lengths.items()))
shared = comm.bcast(["a", ("tuple", rank)], root=size - 1)
if rank == 0:
    say(shared)
    say(f"time {1e6 * (MPI.Wtime() - began):.3f} us")
