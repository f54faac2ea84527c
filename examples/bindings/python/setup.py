# SPDX-License-Identifier: Apache-2.0
"""Adds to the package what is not Python: libgrowpage.so and the declarations of its header.

GROWPAGE_SOURCE   checkout of growpage; default: the one this folder is in
GROWPAGE_LIBRARY  the libgrowpage.so to carry; default: one built from the checkout with CMake
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cffi import FFI
from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from growpage_cdef import declarations  # noqa: E402

SOURCE = Path(os.environ.get("GROWPAGE_SOURCE") or HERE.parents[2])


def version() -> str:
    text = (SOURCE / "include/growpage/version.hpp").read_text(encoding="utf-8")
    parts = (re.search(rf"VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR", "PATCH"))
    return ".".join(part.group(1) for part in parts if part)


def built_libraries(build: Path) -> list[Path]:
    """libgrowpage.so, built from the checkout to look beside itself first, and what it needs that
    another machine need not have."""
    configure = ["cmake", "-S", SOURCE, "-B", build, "-DCMAKE_BUILD_TYPE=Release"]
    configure += ["-DGROWPAGE_C_API=ON", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON"]
    configure += [f"-DGROWPAGE_BUILD_{part}=OFF" for part in ("TESTS", "EXAMPLES", "BENCH")]
    subprocess.run(configure, check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", build, "--target", "growpage_c", "-j", jobs], check=True)
    library = build / "capi/libgrowpage.so"
    needed = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    return [library, *map(Path, re.findall(r"=> (\S*/lib(?:fmt|hwy)\.so\S*)", needed))]


class BuildPackage(build_py):
    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "growpage"
        package.mkdir(parents=True, exist_ok=True)
        given = os.environ.get("GROWPAGE_LIBRARY")
        temporary = Path(self.get_finalized_command("build").build_temp)
        library, *needed = [Path(given)] if given else built_libraries(temporary / "cmake")
        shutil.copyfile(library, package / "libgrowpage.so")  # whatever version its name has
        for other in needed:
            shutil.copyfile(other, package / other.name)
        builder = FFI()
        header = SOURCE / "capi/include/growpage/growpage.h"
        builder.cdef(declarations(header.read_text(encoding="utf-8")))
        builder.set_source("growpage._ffi", None)
        builder.emit_python_code(str(package / "_ffi.py"))


class PlatformDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """One wheel a platform: it depends on the machine, not on the version of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    version=version(),
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildPackage, "bdist_wheel": PlatformWheel},
)
