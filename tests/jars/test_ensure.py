"""Downloads against a small repository on loopback: parallel, resumed, verified, and never twice."""

import base64
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.jars import download
from drover.jars.cache import untrusted
from drover.jars.ensure import ensure_jars
from drover.jars.lock import Jar
from drover.jars.progress import Advance, no_progress
from tests.jars.repository import Repository, serve


def jar_of(name: str, content: bytes) -> Jar:
    return Jar("org.example", name, "1.0", hashlib.sha256(content).hexdigest(), len(content))


CONTENTS = {name: (name * 50_000).encode() for name in ("alpha", "beta", "gamma")}
JARS = tuple(jar_of(name, content) for name, content in CONTENTS.items())


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setattr(download, "FIRST_PAUSE_S", 0.001)
    repository = Repository()
    repository.files = {jar.path: CONTENTS[jar.name] for jar in JARS}
    with serve(repository):
        yield repository


def fetch(repository: Repository, directory: Path, jars: tuple[Jar, ...] = JARS) -> None:
    ensure_jars(jars, directory, title="test", progress=no_progress, mirror=repository.address)


def files_below(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*") if path.suffix in {".jar", ".part"}}


def test_jars_are_fetched_in_parallel_to_their_maven_paths(repository: Repository, tmp_path: Path) -> None:
    # Each answer waits until every jar was asked for: one after another this would never end.
    repository.together = threading.Barrier(len(JARS))
    fetch(repository, tmp_path)
    for jar in JARS:
        assert (tmp_path / jar.path).read_bytes() == CONTENTS[jar.name]
    assert files_below(tmp_path) == {"alpha-1.0.jar", "beta-1.0.jar", "gamma-1.0.jar"}


def test_a_second_run_needs_no_network(repository: Repository, tmp_path: Path) -> None:
    fetch(repository, tmp_path)
    asked = len(repository.requests)
    fetch(repository, tmp_path)
    ensure_jars(JARS, tmp_path, title="test", progress=no_progress, mirror="http://127.0.0.1:1")
    assert len(repository.requests) == asked


def test_a_cut_connection_is_resumed_where_it_was_cut(repository: Repository, tmp_path: Path) -> None:
    jar = JARS[0]
    repository.cut_after_bytes[jar.path] = 100_000
    fetch(repository, tmp_path, (jar,))
    assert (tmp_path / jar.path).read_bytes() == CONTENTS[jar.name]
    assert repository.requested(jar.path) == [None, "bytes=100000-"]


def test_what_an_earlier_run_left_is_resumed(repository: Repository, tmp_path: Path) -> None:
    jar = JARS[0]
    part = (tmp_path / jar.path).with_suffix(".jar.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENTS[jar.name][:5])
    fetch(repository, tmp_path, (jar,))
    assert repository.requested(jar.path) == ["bytes=5-"]
    assert (tmp_path / jar.path).read_bytes() == CONTENTS[jar.name]


def test_a_wrong_rest_of_an_earlier_run_is_thrown_away_and_fetched_in_one_piece(
    repository: Repository, tmp_path: Path
) -> None:
    jar = JARS[0]
    part = (tmp_path / jar.path).with_suffix(".jar.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"other")
    fetch(repository, tmp_path, (jar,))
    assert repository.requested(jar.path) == ["bytes=5-", None]
    assert (tmp_path / jar.path).read_bytes() == CONTENTS[jar.name]


def test_a_wrong_hash_is_refused_with_both_hashes_and_the_file_removed(repository: Repository, tmp_path: Path) -> None:
    jar = JARS[1]
    forged = b"x" * jar.size_bytes
    repository.files[jar.path] = forged
    with pytest.raises(ConfigurationError, match=r"beta-1\.0\.jar") as caught:
        fetch(repository, tmp_path, (jar,))
    assert jar.sha256 in str(caught.value)
    assert hashlib.sha256(forged).hexdigest() in str(caught.value)
    assert files_below(tmp_path) == set()


def test_a_fault_that_passes_is_tried_again(repository: Repository, tmp_path: Path) -> None:
    repository.failures[JARS[0].path] = 2
    fetch(repository, tmp_path, JARS[:1])
    assert len(repository.requested(JARS[0].path)) == 3


def test_a_jar_the_mirror_does_not_have_is_asked_for_once_and_named(repository: Repository, tmp_path: Path) -> None:
    del repository.files[JARS[0].path]
    with pytest.raises(ConfigurationError, match="404"):
        fetch(repository, tmp_path, JARS[:1])
    assert len(repository.requested(JARS[0].path)) == 1


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_cache_that_cannot_be_made_is_named_with_the_remedy(
    repository: Repository, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"nothing can be kept in .*file.*DROVER_CACHE_DIR"):
        fetch(repository, tmp_path / name)
    assert not repository.requests


def test_a_cache_that_cannot_be_written_is_named_with_the_remedy(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests may run as a user who may write everywhere."""
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigurationError, match=r"cannot be written\): name a directory in DROVER_CACHE_DIR"):
        fetch(repository, tmp_path)


def test_offline_without_a_cache_says_what_to_do(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"offline and alpha-1\.0\.jar is not in the cache.*DROVER_MAVEN_MIRROR"
    ):
        ensure_jars(JARS[:1], tmp_path, title="test", progress=no_progress, mirror="http://127.0.0.1:1")


def test_a_jar_of_another_size_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    fetch(repository, tmp_path)
    (tmp_path / JARS[2].path).write_bytes(b"damaged")
    fetch(repository, tmp_path)
    assert (tmp_path / JARS[2].path).read_bytes() == CONTENTS["gamma"]
    assert [len(repository.requested(jar.path)) for jar in JARS] == [1, 1, 2]


def test_a_present_jar_that_was_never_verified_is_verified_and_not_fetched(
    repository: Repository, tmp_path: Path
) -> None:
    for jar in JARS:
        (tmp_path / jar.path).parent.mkdir(parents=True)
        (tmp_path / jar.path).write_bytes(CONTENTS[jar.name])
    fetch(repository, tmp_path)
    assert repository.requests == []


def test_progress_ends_at_the_total_also_after_a_resume(repository: Repository, tmp_path: Path) -> None:
    repository.cut_after_bytes[JARS[0].path] = 70_000
    gained: list[int] = []
    totals: list[int] = []

    @contextmanager
    def record(_title: str, total_bytes: int) -> Iterator[Advance]:
        totals.append(total_bytes)
        yield gained.append

    ensure_jars(JARS, tmp_path, title="test", progress=record, mirror=repository.address)
    assert [sum(gained)] == totals


def test_a_mirror_that_is_no_web_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="DROVER_MAVEN_MIRROR must be an http or https address"):
        ensure_jars(JARS, tmp_path, title="test", progress=no_progress, mirror="/srv/maven")


def test_the_environment_names_the_mirror(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROVER_MAVEN_MIRROR", repository.address + "/")
    ensure_jars(JARS, tmp_path, title="test", progress=no_progress)
    assert len(repository.requests) == len(JARS)


def test_a_mirror_that_sends_more_than_is_locked_is_cut_off(repository: Repository, tmp_path: Path) -> None:
    repository.files[JARS[0].path] += b"x" * 1_000_000
    with pytest.raises(ConfigurationError, match=r"larger than the .* bytes that are locked"):
        fetch(repository, tmp_path, JARS[:1])
    left = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file() and path.suffix == ".part")
    assert left <= JARS[0].size_bytes


def test_a_mirror_without_encryption_must_be_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=download.HTTP_VARIABLE):
        download.mirror_base("http://mirror.example/maven2")
    monkeypatch.setenv(download.HTTP_VARIABLE, "1")
    assert download.mirror_base("http://mirror.example/maven2/") == "http://mirror.example/maven2"


@pytest.mark.parametrize("mode", [0o777, 0o775], ids=["the world", "the group"])
@pytest.mark.parametrize("exposed", ["above the cache", "the cache", "the jar's folder", "the jar"])
def test_a_jar_that_others_may_have_replaced_is_hashed_each_time(
    repository: Repository, tmp_path: Path, exposed: str, mode: int
) -> None:
    cache = tmp_path / "above" / "jars"
    cache.mkdir(parents=True)
    fetch(repository, cache)
    file = cache / JARS[0].path
    file.write_bytes(b"y" * JARS[0].size_bytes)
    fetch(repository, cache)
    assert file.read_bytes() != CONTENTS["alpha"], "in a cache of one's own the size is enough"
    places = {"above the cache": cache.parent, "the cache": cache, "the jar's folder": file.parent, "the jar": file}
    places[exposed].chmod(mode)
    fetch(repository, cache)
    assert file.read_bytes() == CONTENTS["alpha"]


def test_a_cache_in_a_directory_like_tmp_is_ones_own(repository: Repository, tmp_path: Path) -> None:
    cache = tmp_path / "like-tmp" / "jars"
    cache.mkdir(parents=True)
    cache.parent.chmod(0o1777)
    fetch(repository, cache)
    assert untrusted(cache, JARS) == ()


def test_a_mirror_with_a_password_is_asked_with_it_and_no_message_shows_it(
    repository: Repository, tmp_path: Path
) -> None:
    mirror = repository.address.replace("http://", "http://ann:p%40ss@")
    del repository.files[JARS[1].path]
    with pytest.raises(ConfigurationError) as raised:
        ensure_jars(JARS[1:2], tmp_path, title="test", progress=no_progress, mirror=mirror)
    assert "p%40ss" not in str(raised.value)
    assert repository.address in str(raised.value)
    assert set(repository.authorizations) == {f"Basic {base64.b64encode(b'ann:p@ss').decode()}"}
    with pytest.raises(ConfigurationError) as raised:
        download.mirror_base("http://ann:p%40ss@mirror.example/maven2")
    assert "p%40ss" not in str(raised.value)
