# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the modules that vLLM's cache manager imports and the measured calls never use:
torch, message queues, the configuration of the engine. Any attribute of one is an empty class."""

import importlib.abc
import importlib.machinery
import sys
import types


class Anything(type):
    """A class of which everything may be asked: subscripts, attributes, unions, calls."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = anything(name)
        setattr(cls, name, value)
        return value

    def __getitem__(cls, _):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__


def anything(name):
    return Anything(name, (), {"__init__": lambda self, *arguments, **named: None})


class StandIn(types.ModuleType):
    real = frozenset()

    def __getattr__(self, name):
        # Without the attribute `from package import module` imports the real module.
        if name.startswith("__") or f"{self.__name__}.{name}" in self.real:
            raise AttributeError(name)
        value = anything(name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for modules below `roots` that are not among the `real` ones below `tree`."""

    def __init__(self, tree, roots, real):
        self.tree = tree
        self.roots = roots
        self.real = real

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.roots or name in self.real:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = StandIn(spec.name)
        module.real = self.real
        return module

    def exec_module(self, module):
        # Real modules may lie below a stand-in.
        module.__path__ = [f"{self.tree}/{module.__name__.replace('.', '/')}"]


def install(tree, roots, real):
    sys.meta_path.insert(0, Finder(tree, roots, real))
