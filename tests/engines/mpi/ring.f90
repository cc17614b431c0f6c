! A ring of ranks, in Fortran: messages, a Cartesian topology, a reduction, and a clock that says how
! long a second of work took.
program ring
  use mpi
  implicit none
  integer :: error, rank, ranks, left, right, comm, i
  integer :: state(MPI_STATUS_SIZE)
  logical :: wraps(1) = .true.
  integer :: extents(1)
  double precision :: value, sum, began
  real :: least
  call MPI_Init(error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  extents(1) = ranks
  call MPI_Cart_create(MPI_COMM_WORLD, 1, extents, wraps, .false., comm, error)
  call MPI_Comm_rank(comm, rank, error)
  call MPI_Cart_shift(comm, 0, 1, left, right, error)
  value = rank
  do i = 1, ranks - 1
    call MPI_Sendrecv_replace(value, 1, MPI_DOUBLE_PRECISION, right, 7, left, 7, comm, state, error)
  end do
  call MPI_Allreduce(value, sum, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
  call MPI_Reduce(real(value) + 1, least, 1, MPI_REAL, MPI_MIN, 0, comm, error)
  began = MPI_Wtime()
  call sleep(1)
  if (rank == 0) print '(a,f8.1,f6.1,f6.1)', 'sum, least, seconds', sum, least, MPI_Wtime() - began
  call MPI_Finalize(error)
end program ring
