"""Threads: kernels leave the interpreter to others, and batches are worked on at once. No clock is asked."""

import importlib
import pkgutil
import threading
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

import simdup
from simdup import Scheme, fingerprint

WORD = Scheme("word", 1, 64, "tf")


def kernels() -> dict[str, Dispatcher]:
    """Every compiled function of the package that is called from Python or stands in a file of its own."""
    found = {}
    for module in pkgutil.walk_packages(simdup.__path__, "simdup."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Dispatcher) and "inline" not in value.targetoptions:
                found[f"{module.name}.{name}"] = value
    return found


def test_every_kernel_releases_the_interpreter() -> None:
    assert len(kernels()) > 10
    assert [name for name, kernel in kernels().items() if not kernel.targetoptions.get("nogil")] == []


def test_a_long_kernel_leaves_the_interpreter_to_others() -> None:
    """While one thread is in the kernels, this one counts; it could not if they kept the interpreter."""
    text = "word " * 4_000_000
    fingerprint("word", WORD)
    running, done = threading.Event(), threading.Event()

    def work() -> None:
        running.set()
        fingerprint(text, WORD)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    steps = 0
    while not done.wait(0.001):
        steps += 1
    thread.join()
    assert steps > 10


@pytest.mark.parametrize("threads", [2, 3])
def test_batches_are_worked_on_at_once(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch waits until as many are begun as there are threads: one after the other they would wait for ever."""
    module: Any = importlib.import_module("simdup.fingerprint")
    barrier = threading.Barrier(threads, timeout=60)
    original = module._fingerprint_batch

    def together(*arguments: Any) -> Any:
        barrier.wait()
        return original(*arguments)

    monkeypatch.setattr("simdup.batches.BATCH_TEXTS", 1)
    monkeypatch.setattr(module, "_fingerprint_batch", together)
    texts = [f"text {number}" for number in range(4 * threads)]
    assert fingerprint(iter(texts), WORD, threads=threads) == fingerprint(texts, WORD, threads=threads)
