# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyHpctrain(PythonPackage):
    """Slurm scripts, site profiles and scaling reports for distributed PyTorch training."""

    pypi = "hpctrain/hpctrain-0.1.0.tar.gz"

    # Others need packages of the variants.
    import_modules = ["hpc_train", "hpc_train.cli"]

    license("Apache-2.0")

    # `spack checksum --add-to-package py-hpctrain 0.1.0` adds the digest of the archive.
    version("0.1.0")

    variant("report", default=False, description="Reports: tables, statistics and figures")
    variant("parquet", default=False, description="Records in Parquet files")
    variant("xlsx", default=False, description="Tables in Excel workbooks")
    variant("torch", default=False, description="The training scripts of the examples")
    variant("sagemaker", default=False, description="Training jobs of Amazon SageMaker")

    depends_on("py-hatchling@1.24:", type="build")

    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        depends_on("py-click@8.1:")
        depends_on("py-jinja2@3.1:")
        depends_on("py-msgspec@0.19:")
        depends_on("py-pyyaml@6.0:")
        depends_on("py-submitit@1.5.2:1.5")
        depends_on("py-rich@13.7:")
        depends_on("py-zstandard@0.22:")

        depends_on("py-pandas@2.2:", when="+report")
        depends_on("py-scipy@1.11:", when="+report")
        depends_on("py-matplotlib@3.8:", when="+report")

        depends_on("py-pyarrow@15:", when="+parquet")
        depends_on("py-pandas@2.2:", when="+parquet")

        depends_on("py-openpyxl@3.1:", when="+xlsx")

        depends_on("py-torch@2.4:", when="+torch")
        depends_on("py-scikit-learn@1.4:", when="+torch")

        depends_on("py-boto3@1.40:", when="+sagemaker")
