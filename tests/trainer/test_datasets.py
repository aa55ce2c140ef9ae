import pytest

torch = pytest.importorskip("torch")

from hpc_train.trainer.datasets import Images, load_data  # noqa: E402
from hpc_train.trainer.process_group import launcher_of  # noqa: E402
from hpc_train.trainer.training_loop import Loader, Order  # noqa: E402

CPU = torch.device("cpu"), torch.float32


def numbers(count: int) -> Images:
    images = torch.zeros(count, 1, 2, 2, dtype=torch.uint8)
    return Images(images=images, labels=torch.arange(count), white=1.0)


def share(rank: int, ranks: int, epoch: int, first: int = 0, workers: int = 0) -> list[list[int]]:
    loader = Loader(numbers(103), Order(103, 12 // ranks, (rank, ranks), 0), CPU, workers)
    return [labels.tolist() for _, labels in loader.epoch(epoch, first)]


def shares(ranks: int, epoch: int = 1) -> list[list[list[int]]]:
    return [share(rank, ranks, epoch) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_global_batches_do_not_depend_on_the_ranks(ranks: int) -> None:
    whole = [set(batch) for batch in shares(1)[0]]
    parts = [set().union(*batch) for batch in zip(*shares(ranks), strict=True)]
    assert len(whole) == 8
    assert all(len(batch) == 12 for batch in whole)
    assert whole == parts


def test_workers_change_neither_batches_nor_their_order() -> None:
    assert share(0, 2, epoch=3, workers=2) == share(0, 2, epoch=3)


def test_an_epoch_continues_where_it_was_left() -> None:
    assert share(0, 1, epoch=1, first=3) == share(0, 1, epoch=1)[3:]


def test_digits_split_is_fixed_and_whole() -> None:
    pytest.importorskip("sklearn")
    train, test = load_data("digits")
    assert (len(train), len(test)) == (1437, 360)
    images, labels = train.prepare(train.__getitems__([0, 1]), *CPU)
    assert images.shape == (2, 1, 8, 8)
    assert (images.min().item(), images.max().item()) == (-0.5, 0.5)
    again, _ = load_data("digits")
    assert torch.equal(labels, again.__getitems__([0, 1])[1])


@pytest.mark.parametrize(
    ("names", "size", "launcher"),
    [
        ((), 1, "single"),
        (("SLURM_STEP_ID",), 1, "single"),
        (("RANK",), 1, "single"),
        (("RANK",), 2, "unknown"),
        (("RANK", "SLURM_STEP_ID"), 2, "srun"),
        (("RANK", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID"), 2, "torchrun"),
        (("RANK", "SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK"), 2, "mpirun"),
        (("RANK", "SLURM_STEP_ID", "HPCTRAIN_SPAWNED"), 2, "spawn"),
    ],
)
def test_launcher_is_recognised(names: tuple[str, ...], size: int, launcher: str) -> None:
    assert launcher_of(dict.fromkeys(names, "0"), size) == launcher
