"""How a Kafka cluster behaves where versions differ: traits as values, and the rule that finds them.

Drover asks for traits, never for a version. A trait is read from the brokers' own answers (KIP-35's API versions with
KIP-584's features). Where these are new to Drover, or differ between brokers, each trait has its careful reading: the
one with which Drover promises least.
"""

from collections.abc import Collection
from dataclasses import dataclass

from drover.events.traits import Completion, Retarget, Traits


@dataclass(frozen=True, slots=True)
class BrokerVersion:
    """The fields of one broker's ApiVersions response that tell releases apart.

    `supported_metadata_version` is the highest level of the feature `metadata.version` that its software knows, and
    `metadata_version` the level in force, which every controller knows, too; None if the response has none, as in
    ZooKeeper mode. `fetch_version` is the highest version of Fetch, which tells releases apart there.
    `elr_version` is that of `eligible.leader.replicas.version`, 0 when it is off or unknown.
    """

    supported_metadata_version: int | None
    metadata_version: int | None
    fetch_version: int
    elr_version: int = 0


@dataclass(frozen=True, slots=True)
class _Release:
    name: str
    completion: Completion
    elects_unclean: bool = True


# By the highest level of `metadata.version` that the release supports; docs/kafka-versions.md lists the tested ones.
_RELEASES = {
    19: _Release("3.7", Completion.ADDED, elects_unclean=False),
    20: _Release("3.8", Completion.TARGET, elects_unclean=False),
    21: _Release("3.9", Completion.TARGET),
    25: _Release("4.0", Completion.TARGET),
    27: _Release("4.1", Completion.TARGET),
    29: _Release("4.2", Completion.TARGET),
    30: _Release("4.3", Completion.ADDED_UNLESS_SHRINKING),
    33: _Release("4.4", Completion.ADDED_UNLESS_SHRINKING),
}
# In ZooKeeper mode only 3.9 was run; 3.7 and 3.8 have the same controller.
_ZOOKEEPER_MODE, _KNOWN_FETCH_VERSIONS = "3", range(16, 18)
LATEST = Traits(
    kafka="4.3",
    completion=Completion.ADDED_UNLESS_SHRINKING,
    is_known=True,
    with_elr=True,
    takes_dead_destinations=True,
    elects_unclean=True,
)
"""The traits of the release that all tests run on."""


def traits_of(brokers: Collection[BrokerVersion]) -> Traits | None:
    """Return the traits of a cluster by the answers of its live brokers; None without any answer.

    Brokers that do not agree are being upgraded: a controller may be any of them, so the careful readings hold. If only
    some are in ZooKeeper mode, the cluster is being migrated to KRaft.
    """
    distinct = sorted({_traits_of_broker(broker) for broker in brokers}, key=lambda traits: traits.kafka)
    if len(distinct) < 2:
        return distinct[0] if distinct else None
    modes = {traits.zookeeper_mode for traits in distinct}
    return Traits(
        kafka=" and ".join(dict.fromkeys(traits.kafka for traits in distinct)),
        zookeeper_mode=modes == {True},
        migrates=len(modes) > 1,
    )


def version_of(traits: Traits) -> BrokerVersion:
    """Return the answer of a broker of a known release with these traits; the reverse of `traits_of`."""
    if traits.zookeeper_mode:
        return BrokerVersion(None, None, _KNOWN_FETCH_VERSIONS[-1])
    level = next(level for level, release in _RELEASES.items() if release.name == traits.kafka)
    return BrokerVersion(level, level, _KNOWN_FETCH_VERSIONS[-1], int(traits.with_elr))


def is_known_release(kafka: str) -> bool:
    """Whether a release, named as in `3.9`, was seen running with KRaft."""
    return any(release.name == kafka for release in _RELEASES.values())


def known_traits(kafka: str, *, zookeeper_mode: bool = False, with_elr: bool = False) -> Traits:
    """Return the traits of a release in the table, named as in `3.9`."""
    return _traits_of_broker(version_of(Traits(kafka=kafka, zookeeper_mode=zookeeper_mode, with_elr=with_elr)))


def _traits_of_broker(broker: BrokerVersion) -> Traits:
    level = broker.supported_metadata_version
    if level is None:
        is_known = broker.fetch_version in _KNOWN_FETCH_VERSIONS
        return Traits(
            kafka=_ZOOKEEPER_MODE,
            retarget=Retarget.ORIGINAL,
            is_known=is_known,
            zookeeper_mode=True,
            elects_unclean=is_known,
        )
    release = _RELEASES.get(level)
    if release is None:
        # Only what its features say is relied on.
        name = f"newer than {_RELEASES[max(_RELEASES)].name}" if level > max(_RELEASES) else "of an unknown release"
        return Traits(kafka=f"{name} (metadata.version {level})", with_elr=broker.elr_version > 0)
    controllers = _controllers_of(level, broker.metadata_version or 0)
    is_known = len({controller.completion for controller in controllers}) == 1
    return Traits(
        kafka=release.name if is_known else f"{release.name} (metadata.version of {controllers[0].name} or before)",
        completion=release.completion if is_known else Completion.TARGET,
        is_known=is_known,
        with_elr=broker.elr_version > 0,
        takes_dead_destinations=True,
        elects_unclean=all(controller.elects_unclean for controller in controllers),
    )


def _controllers_of(supported: int, in_force: int) -> tuple[_Release, ...]:
    """List the releases that the controllers may run, the oldest first: no client can ask them.

    They know the level in force. That they are no newer than the brokers is assumed.
    """
    older = (release for level, release in sorted(_RELEASES.items()) if in_force <= level < supported)
    return (*older, _RELEASES[supported])
