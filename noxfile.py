"""The checks of this repository, each by name: `nox -l` lists them, `nox` runs `check`.

They run in the environment that nox itself is installed in (README's test line makes one), so
that nothing is installed twice. `.ci/run` uses the same entries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path, PurePosixPath

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # nox does not run from there

from lab.house.where import find_tests  # noqa: E402

nox.options.default_venv_backend = "none"
nox.options.sessions = ["check"]
nox.needs_version = ">=2025.2.9"

VERSION_TESTS = ("tests/parsers", "tests/streamlib/client", "tests/streamlib/transport")
"""What is run with other versions: what depends on them."""

THOROUGH_TESTS = (
    "tests/lab/storm/test_yields.py",
    "tests/parsers/dialects/test_dialect_prefixes.py",
    "tests/parsers/dialects/test_dialects.py",
    "tests/parsers/framing/test_sse.py::test_any_body_in_any_partition_reads_as_the_standard",
    "tests/parsers/framing/test_sse_limits.py::test_limit_fails_at_the_same_byte_in_any_partition",
    "tests/parsers/wires/chat/test_chat_invariants.py",
    "tests/parsers/wires/responses/test_responses_invariants.py",
    "tests/properties/test_invariants_generated.py",
    "tests/properties/test_recordings.py",
    "tests/properties/test_request_fidelity.py",
    "tests/properties/test_stages_encoders.py",
    "tests/properties/test_text_stages.py",
    "tests/properties/test_transcripts.py::test_any_value_is_a_transcript_or_an_error",
    "tests/properties/test_type_confusion.py",
    "tests/properties/test_wire_machines.py",
    "tests/streamlib/history/test_explain.py::test_conversation_that_goes_on_loses_nothing",
    "tests/streamlib/pipeline/test_starts.py::test_many_streams_with_faults_are_never_mixed",
    "tests/streamlib/testing/provider/strict/test_builders.py",
    "tests/streamlib/testing/test_fuzzing.py::test_short_campaign_finds_nothing",
    "tests/streamlib/web/test_ui_encoders.py::test_recording_keeps_the_protocol",
    (
        "tests/streamlib/wires/chat/test_encode.py"
        "::test_the_official_sdk_reads_recordings_of_every_wire"
    ),
    (
        "tests/streamlib/wires/responses/test_encode.py"
        "::test_the_official_sdk_reads_responses_of_any_wire"
    ),
    "tests/streamlib/wires/test_cross_wire.py::test_each_request_begins_with_the_previous_one",
)
"""Of which `thorough` tries more examples, yields or bodies than the default run."""

PYTHONS = ["3.11", "3.12", "3.13"]
"""Those of the classifiers in pyproject.toml."""

COMPILED_TESTS = (
    "tests/compiled",
    "tests/parsers",
    "tests/properties",
    "tests/streamlib/client",
    "tests/streamlib/client/sync",
    "tests/streamlib/testing/test_fuzzing.py",
)
"""What is run on the compiled build: parsers, client, properties, corpora of the fuzzers."""

EXTRAS = "cli,httpx2,http2,br,zstd,aiohttp,gateway,bedrock,otel,websocket"

SDIST_EXTRAS = f"{EXTRAS},web,seal,metrics,redis,pipeline"
"""What all tests of the sdist need to be collected."""

SDIST_TESTS = (
    "tests/house/test_public_names.py",
    "tests/parsers/framing",
    "tests/streamlib/client/sync",
    "tests/streamlib/structured",
    "tests/streamlib/tools",
)
"""Those of the sdist that are run, beside the collection of all: a minute."""


def run(session: nox.Session, *command: str) -> None:
    """Run a module of this environment."""
    session.run(sys.executable, "-m", *command, external=True)


@nox.session
def style(session: nox.Session) -> None:
    """ruff: lint and format."""
    run(session, "ruff", "check", ".")
    run(session, "ruff", "format", "--check", ".")


@nox.session
def mypy(session: nox.Session) -> None:
    """mypy --strict, and that it finds the mistakes that a test plants."""
    run(session, "mypy", "--strict")
    run(session, "pytest", "-q", "-m", "checkers", "tests/house")


@nox.session
def pyright(session: nox.Session) -> None:
    """basedpyright, strict."""
    run(session, "basedpyright", "--pythonpath", sys.executable)


@nox.session
def examples(session: nox.Session) -> None:
    """mypy and basedpyright over the examples of README and of every page."""
    run(session, "lab.example_types")
    run(session, "pytest", "-q", "-m", "checkers", "tests/docs")


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the documentation site into build/site and checks its links."""
    run(session, "lab.site")


@nox.session
def imports(session: nox.Session) -> None:
    """Import directions between the rooms."""
    session.run(str(Path(sys.executable).with_name("lint-imports")), "--no-logo", external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """Every default test; arguments behind `--` go to pytest."""
    run(session, "pytest", "-n", "auto", "--dist", "worksteal", *session.posargs)


@nox.session
def timing(session: nox.Session) -> None:
    """Tests that compare times of CPU, one after another: beside others they measure those too."""
    run(session, "pytest", "-m", "timing and not slow", *session.posargs)


@nox.session
def thorough(session: nox.Session) -> None:
    """Properties with thirty times as many examples; `nox -s thorough -- --hypothesis-seed=N`."""
    session.env["HYPOTHESIS_PROFILE"] = "thorough"
    # Always the same here, so that a change is never refused for what another one broke.
    options = session.posargs or ["--hypothesis-seed=31"]
    run(session, "pytest", "-q", "-n", "auto", "--dist", "worksteal", *options, *THOROUGH_TESTS)


@nox.session
def real(session: nox.Session) -> None:
    """Tests against real counterparts, which are fetched first."""
    run(session, "lab.real.fetch")
    run(session, "pytest", "-m", "real", *session.posargs)


@nox.session
@nox.parametrize("python_version", PYTHONS, ids=PYTHONS)
@nox.parametrize("resolution", ["lowest-direct", "highest"], ids=["lowest", "newest"])
def versions(session: nox.Session, python_version: str, resolution: str) -> None:
    """Client, transport and parsers with every dependency at its lowest or its newest version."""
    command = [
        sys.executable,
        "-c",
        f"from lab.pythons import *; print(find_python({python_version!r}))",
    ]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    interpreter = found.stdout.strip()
    if interpreter == "None":
        session.skip(f"!! Python {python_version} is not installed: nothing was run with it")
    environment = Path(session.create_tmp()) / "environment"
    run(session, "uv", "venv", "--quiet", "--clear", "--python", interpreter, str(environment))
    folder = "Scripts" if os.name == "nt" else "bin"
    chosen = str(environment / folder / "python")
    packages = ["-e", f".[{EXTRAS}]", "--group", "test"]
    install = ["uv", "pip", "install", "--quiet", "--python", chosen, "--resolution", resolution]
    run(session, *install, *packages)
    options = ["-q", "-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider"]
    session.run(chosen, "-m", "pytest", *options, *VERSION_TESTS, *session.posargs, external=True)


@nox.session
def package(session: nox.Session) -> None:
    """Builds wheel and sdist, uses each in a clean environment, and runs tests of the sdist."""
    folder = Path(session.create_tmp()).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    run(session, "uv", "build", "--quiet", "--out-dir", str(folder))
    files = sorted(path for path in folder.iterdir() if path.suffix in {".whl", ".gz"})
    run(session, "twine", "check", "--strict", *map(str, files))
    for path in files:
        environment = folder / path.suffix.lstrip(".")
        run(session, "uv", "venv", "--quiet", str(environment))
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        requirement = f"streamlib[cli] @ {path.as_uri()}"
        python = str(scripts / "python")
        run(session, "uv", "pip", "install", "--quiet", "--python", python, requirement)
        # Not the checkout: from another folder, and without its path.
        session.chdir(folder)
        alone = {"PYTHONPATH": ""}
        session.run(python, str(ROOT / "lab" / "installed.py"), env=alone, external=True)
        session.run(str(scripts / "streamlib"), "chat", "Hello", env=alone, external=True)
        # An extra brings all that it needs: a gateway with metrics starts from `metrics` alone.
        metrics = f"streamlib[metrics] @ {path.as_uri()}"
        run(session, "uv", "pip", "install", "--quiet", "--python", python, metrics)
        imported = "import streamlib.gateway.watch.metrics, streamlib.cli.gateway_server"
        session.run(python, "-c", imported, env=alone, external=True)
        session.chdir(ROOT)
    test_sdist(session, folder)


def test_sdist(session: nox.Session, folder: Path) -> None:
    """Collects all tests of the sdist, and runs some, in an environment made from it alone."""
    [sdist] = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    environment = folder / "sdist"
    run(session, "uv", "venv", "--quiet", str(environment))
    python = str(environment / ("Scripts" if os.name == "nt" else "bin") / "python")
    session.chdir(unpacked)
    install = ["uv", "pip", "install", "--quiet", "--python", python]
    run(session, *install, f".[{SDIST_EXTRAS}]", "--group", "test")
    # Without what lies beside the repository: the tests that read it are skipped.
    alone = {"PYTHONPATH": "", "STREAMLIB_SHARED": "", "STREAMLIB_CORPUS": ""}
    options = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    session.run(python, *options, "-q", "--collect-only", env=alone, external=True, silent=True)
    session.run(python, *options, *SDIST_TESTS, env=alone, external=True)
    session.chdir(ROOT)


@nox.session
def workflows(session: nox.Session) -> None:
    """zizmor over the workflows of .github, without a network."""
    zizmor = str(Path(sys.executable).with_name("zizmor"))
    session.run(zizmor, "--offline", "--persona", "pedantic", ".github", external=True)


@nox.session
def api(session: nox.Session) -> None:
    """Changes of the public API since a commit that break its users: `nox -s api -- v0.2.0`."""
    if not session.posargs:
        session.error("name the commit or the tag to compare with: nox -s api -- REF")
    griffe = str(Path(sys.executable).with_name("griffe"))
    for package_name in ("streamlib", "streamlib_parsers"):
        search = ["--search", ".", "--search", "parsers"]
        session.run(
            griffe, "check", package_name, *search, "--against", session.posargs[0], external=True
        )


@nox.session
def compiled(session: nox.Session) -> None:
    """Builds with mypyc into build/compiled, and tests that build beside the pure one."""
    compiler = str(sysconfig.get_config_var("CC") or "cl").split()[0]
    if shutil.which(compiler) is None:
        session.skip(f"!! no C compiler ({compiler}): nothing was compiled")
    wheels, folder = ROOT / "build" / "wheels", ROOT / "build" / "compiled"
    for old in (wheels, folder):
        shutil.rmtree(old, ignore_errors=True)
    build = ["uv", "build", "--quiet", "--wheel", "--python", sys.executable]
    session.env["STREAMLIB_COMPILE"] = "1"
    run(session, *build, "--out-dir", str(wheels))
    [wheel] = wheels.glob("*.whl")
    session.log("%s: %d KB", wheel.name, wheel.stat().st_size // 1024)
    run(
        session, "uv", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel)
    )
    # First on the path, also of the processes that tests start.
    session.env["PYTHONPATH"] = str(folder)
    options = ["-q", "-n", "auto", "--dist", "worksteal", "-o", f"pythonpath={folder} ."]
    options += ["-m", "compiled or not (slow or real or checkers or timing)"]
    run(session, "pytest", *options, *COMPILED_TESTS, *session.posargs)


@nox.session
def check(session: nox.Session) -> None:
    """What to run before a commit: style, mypy, imports, and the tests of what changed."""
    style(session)
    mypy(session)
    imports(session)
    folders = tests_of(changed_files())
    session.log("tests: %s", " ".join(folders) or "nothing changed that has tests")
    if folders:
        run(session, "pytest", "-q", "-n", "auto", "--dist", "worksteal", *folders)


def changed_files() -> list[str]:
    """Files that differ from the branch point of `main`, or from the last commit on `main`."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    changed = _git("diff", "--name-only", base[0])
    return sorted({*changed, *_git("ls-files", "--others", "--exclude-standard")})


def tests_of(files: list[str]) -> list[str]:
    """The nearest test folder or file for each file, as `lab.house.where` has them."""
    found: set[str] = set()
    for name in files:
        path = PurePosixPath(name)
        if path.parts[0] == "tests":
            if path.name.startswith("test_") and (ROOT / path).exists():
                found.add(name)
            continue
        its_tests = find_tests(path)
        if its_tests is not None:
            found.add(its_tests)
    return sorted(found)


def _git(*arguments: str) -> list[str]:
    command = ["git", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.returncode:
        return []
    return result.stdout.split()
