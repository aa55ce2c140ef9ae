"""MPI_Allreduce of Open MPI, timed as `hpctrain bench allreduce` does, through ctypes.

Per size one untimed call, a barrier, 20 calls in a row; the time is the mean over the ranks. Rank 0
prints bytes and microseconds: `mpirun -n 2 python -m tests.bench.mpi_allreduce`.
"""

from __future__ import annotations

import ctypes
import time

CALLS = 20
SIZES = [1024 * 4**power for power in range(8)]


def main() -> None:
    """Measure as one rank."""
    mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)

    def handle(name: str) -> ctypes.c_void_p:
        # In Open MPI a handle is the address of an object of the library.
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))

    world, total = handle("ompi_mpi_comm_world"), handle("ompi_mpi_op_sum")
    single, double = handle("ompi_mpi_float"), handle("ompi_mpi_double")
    mpi.MPI_Init(None, None)
    rank, ranks = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(ranks))
    sent, received = (ctypes.create_string_buffer(SIZES[-1]) for _ in range(2))
    for size in SIZES:
        arguments = (sent, received, size // 4, single, total, world)
        mpi.MPI_Allreduce(*arguments)
        mpi.MPI_Barrier(world)
        begun = time.perf_counter()
        for _ in range(CALLS):
            mpi.MPI_Allreduce(*arguments)
        own = ctypes.c_double((time.perf_counter() - begun) / CALLS)
        every = ctypes.c_double()
        mpi.MPI_Allreduce(ctypes.byref(own), ctypes.byref(every), 1, double, total, world)
        if rank.value == 0:
            print(size, f"{every.value / ranks.value * 1e6:.2f}")
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main()
