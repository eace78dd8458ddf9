"""Packages that hold pages: fetched with pip and apt, and their pages kept in the user's cache."""

import contextlib
import hashlib
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simdup.files import whole

TRIES = 3
_SECONDS = 120.0  # for one try of a command
_SILENCE = 15  # seconds without an answer from the network
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class UnavailableError(RuntimeError):
    """A package cannot be had; the reason in one line."""


@dataclass(frozen=True)
class Package:
    """Where pages come from: Python's package index, pinned by a digest, or a suite of Debian."""

    name: str
    keep: str
    """Which of its files are pages: a regular expression, and its group is the page's path."""
    main: str = ""
    """Where the site's own markup has the text: a CSS selector."""
    head: str = ""
    """What stands above the text in files without markup: a regular expression."""
    pip: str = ""
    sha256: str = ""
    apt: str = ""
    suite: str = ""


def cache_folder() -> pathlib.Path:
    """Where packages are kept: below XDG_CACHE_HOME, or ~/.cache."""
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else pathlib.Path.home() / ".cache") / "simdup" / "corpora"


def fetched(package: Package, scratch: pathlib.Path) -> pathlib.Path:
    """The pages of a package, in a zip in the cache that is there whole or not at all. Fetched unless it is there.

    Parameters
    ----------
    package
        What it asks for is part of the zip's name: with another `keep` it is fetched again.
    scratch
        A folder for what is needed meanwhile, such as the list of a suite's packages. One for all packages.

    Raises
    ------
    UnavailableError
        If pip or apt failed three times, or the package holds no page.
    """
    wanted = f"{package.pip} {package.sha256} {package.apt} {package.suite} {package.keep}"
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:8]
    path = cache_folder() / f"{package.name}-{digest}.zip"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            archive = _download(package, pathlib.Path(folder), scratch)
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as kept:
                kept.comment = archive.name.encode()  # it has the version
                for name, content in _files(archive):
                    if match := re.fullmatch(package.keep, name):
                        kept.writestr(match[1], content)
                if not kept.namelist():
                    raise UnavailableError(f"{archive.name} has no page {package.keep}")
    return path


def run(command: Sequence[str | os.PathLike[str]], folder: pathlib.Path, seconds: float = _SECONDS) -> str:
    """What a command prints, run in a folder, tried three times.

    Raises
    ------
    UnavailableError
        If it failed or was not done in time each time: its last error or line, without addresses.
    """
    printed = folder / "printed"  # no pipe, which would wait for what the command started
    for _ in range(TRIES):
        try:
            with printed.open("wb") as file:
                process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=file, start_new_session=True)
            try:
                failed = process.wait(seconds)
            finally:  # with all that it started
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if not failed:
                return printed.read_text(encoding="utf-8", errors="replace")
            lines = printed.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            errors = [line for line in lines if line.lower().startswith(("error", "e:"))]
            reason = (errors or lines or [f"exit {failed}"])[-1]
        except subprocess.TimeoutExpired:
            reason = f"not done in {seconds:g} seconds"
        except OSError as error:
            reason = str(error)
    raise UnavailableError(f"{pathlib.Path(command[0]).name}: {re.sub(r'[a-z+]+://[^ ]+', '…', reason)}")


def _download(package: Package, folder: pathlib.Path, scratch: pathlib.Path) -> pathlib.Path:
    if package.pip:
        # Of a release's files pip takes the one that has the digest.
        (folder / "wanted.txt").write_text(f"{package.pip} --hash=sha256:{package.sha256}\n", encoding="utf-8")
        options = ("--no-deps", "--disable-pip-version-check", "--retries=0", f"--timeout={_SILENCE}")
        run([sys.executable, "-m", "pip", "download", *options, "-r", "wanted.txt"], folder)
    else:
        run(["apt-get", *_suite(package.suite, scratch), "download", package.apt], folder)
    return next(path for path in folder.iterdir() if path.name.endswith((".tar.gz", ".whl", ".deb")))


def _suite(suite: str, scratch: pathlib.Path) -> list[str]:
    """Options for apt to see one suite only, any, from where this machine has its own."""
    root = scratch / suite
    sources, failed = root / "sources.list", root / "failed"
    options = [
        f"-oDir::Etc::SourceList={sources}",
        "-oDir::Etc::SourceParts=/dev/null",
        f"-oDir::State={root}",
        f"-oDir::State::status={root / 'status'}",
        f"-oDir::Cache={root}",
        "-oAPT::Sandbox::User=root",  # others may not look into the folder
        "-oAPT::Update::Error-Mode=any",
        "-oAcquire::Languages=none",
        "-oAcquire::Retries=0",
        f"-oAcquire::http::Timeout={_SILENCE}",
        f"-oAcquire::https::Timeout={_SILENCE}",
    ]
    if not root.exists():
        (root / "lists" / "partial").mkdir(parents=True)
        (root / "archives" / "partial").mkdir(parents=True)
        (root / "status").touch()
        try:
            targets = run(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)"], root)
            own = f"{platform.freedesktop_os_release().get('VERSION_CODENAME')} main "
            found = [line.removeprefix(own) for line in targets.splitlines() if line.startswith(own)]
            if not found:
                raise UnavailableError(f"apt has no source of {own}, beside which {suite} could be")
            sources.write_text(f"deb [signed-by={_KEYRING}] {found[0]} {suite} main\n", encoding="utf-8")
            run(["apt-get", *options, "update"], root)
        except UnavailableError as error:
            failed.write_text(str(error), encoding="utf-8")  # no other package of the suite need try
    if failed.exists():
        raise UnavailableError(failed.read_text(encoding="utf-8"))
    return options


def _files(archive: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """The files of an archive, a wheel or a Debian package."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                yield name, wheel.read(name)
        return
    tar = archive
    if archive.suffix == ".deb":
        tar = archive.with_suffix(".tar")
        with tar.open("wb") as file:
            subprocess.run(["dpkg-deb", "--fsys-tarfile", archive], stdout=file, check=True)
    with tarfile.open(tar) as members:
        for member in members:
            content = members.extractfile(member) if member.isfile() else None
            if content:
                yield member.name.removeprefix("./"), content.read()
