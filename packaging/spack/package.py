# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Ctrun(CMakePackage):
    """A launcher like torchrun, and libct: the process groups of torch.distributed for C."""

    homepage = "https://github.com/ctrun/libct"
    url = "https://github.com/ctrun/libct/releases/download/v@VERSION@/ctrun-@VERSION@.tar.gz"

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("cuda", default=False, description="Compile the CUDA kernels into libct")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cuda", type="build", when="+cuda")

    depends_on("inih")
    depends_on("libevent@2.1:")
    # Opened when they are first needed.
    depends_on("jansson@2.7:")
    depends_on("openssl@3:")

    requires("platform=linux", "target=x86_64:")

    def cmake_args(self):
        return [
            self.define("BUILD_TESTING", False),
            self.define("CT_CUDA", "on" if self.spec.satisfies("+cuda") else "off"),
            self.define("CT_MPICC", "off"),
        ]
