"""Lines that programs print and no parser is for: a literal that is in them is too common."""

from __future__ import annotations

_LINES = """\
INFO:root:rank {n} of 64 is ready, device cuda:{d}, memory 81251 MiB
2026-01-05 10:11:{d:02},{n:03} - root - INFO - building the data loader, epoch size {n}
2026-01-05 10:11:{d:02} [WARNING] the loss scale was not changed in step 12
/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py:{n}: UserWarning: slow path
  warnings.warn("this time it took longer than expected")
Using device: cuda:{d}, number of parameters: {n},000,000
Loading checkpoint shard {n} of 400 from /scratch/run/model-{n}.safetensors
"hidden_size": {n}, "num_attention_heads": 32, "learning_rate": 0.0003,
  batch_size: {n}
  warmup_steps: 2000
module load gcc/12.3 cuda/12.{d} openmpi/5.0.{d}
srun: job {n} has been allocated resources
[INFO] node{n} sees 8 devices, driver 550.54.{d}
tokenizing shard {n}: 12,345 documents, 1.2 GB, done in {d} s
Epochs of the data set are not shuffled; seed {n}
gcc -O3 -fPIC -I/usr/include/python3.11 -c kernel_{n}.cpp -o kernel_{n}.o
Files already downloaded and verified ({n} of 60000)
the validation accuracy did not improve for {d} epochs
saving the model of iteration {n} took {d}.5 seconds
Größe des Pakets: {n} KiB, Schritt fertig

"""


def noise(size: int) -> bytes:
    """Return about `size` bytes of it, the same every time."""
    block = "".join(_LINES.format(n=n, d=n % 60) for n in range(1000)).encode()
    return block * (size // len(block) + 1)
