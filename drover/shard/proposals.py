"""The record that an owner proposes next, what follows it, and the deadline of the calls that it allows."""

from drover.events.records import Cursor
from drover.fold.log import ShardFold
from drover.reconcile.messages import Moment
from drover.shard.batch_records import Draft, proposed_batch
from drover.shard.intake import Intake, following
from drover.shard.messages import ProposedBatch
from drover.state.hashing import is_hash_due

CALL_START_MS = 1000


class Proposals:
    """The record under way, what follows it, and how far the commands are decided, as the log says.

    `topic_ids` are the ids of the four command topics as they are now; the barrier has compared them.
    """

    def __init__(self, fold: ShardFold, topic_ids: tuple[str, ...]) -> None:
        self._fold = fold
        self._topic_ids = topic_ids
        self.begin(None)

    def begin(self, token: bytes | None) -> None:
        """Begin an ownership with its token; None ends one. Nothing that was proposed before counts any more."""
        # The token under which this worker owns the shard; None while it does not.
        self.token = token
        self.is_under_way = False
        # What did not fit into the record before: it follows at once, and nothing is called before it is durable.
        self._rest: tuple[Draft, ...] = ()
        # A snapshot that was written, and that the log does not vouch for yet.
        self._snapshot_digest: bytes | None = None
        self._proposed_ms = 0
        # When the last valid record was proposed: until then this worker was certainly the owner.
        self._proved_ms = -CALL_START_MS - 1

    def vouch_for(self, snapshot_digest: bytes) -> None:
        """Let the next record say that this snapshot may be used."""
        self._snapshot_digest = snapshot_digest

    @property
    def has_rest(self) -> bool:
        """Whether a part of the last batch is still to follow."""
        return bool(self._rest)

    @property
    def vouches(self) -> bool:
        """Whether a snapshot waits for a record that says that it may be used."""
        return self._snapshot_digest is not None

    @property
    def start_by_ms(self) -> int:
        """The moment (monotonic) by which a call must start.

        A process that has been suspended since it proposed its last valid record may not be the owner any more.
        """
        return self._proved_ms + CALL_START_MS

    def propose(
        self, drafts: tuple[Draft, ...], intake: Intake, now: Moment, *, with_hash: bool = False
    ) -> ProposedBatch:
        """Make the next record, of the first draft; the others are proposed by `propose_rest`, one at a time."""
        assert self.token is not None, "only the owner writes"
        assert not self.is_under_way, "the last batch was neither committed nor disowned"
        draft, *rest = drafts
        self.is_under_way, self._rest = True, tuple(rest)
        self._proposed_ms = now.monotonic_ms
        fold = self._fold
        has_hash = with_hash or is_hash_due(fold.sequence + 1, fold.state.clusters)
        state_hash = fold.state.hash() if has_hash else None
        cursors = following(self._cursors, intake.taken)
        return proposed_batch(fold, self.token, cursors, draft, intake, state_hash, self._snapshot_digest)

    def propose_rest(self, now: Moment) -> ProposedBatch:
        """Make the record of the next draft that is left."""
        return self.propose(self._rest, Intake(), now)

    def commit(self, proposed: ProposedBatch) -> None:
        """Note that the record is durable and was folded as valid."""
        assert self._fold.sequence >= proposed.record.sequence, "a batch is committed after its record was folded"
        self.is_under_way = False
        self._proved_ms = self._proposed_ms
        if proposed.record.snapshot_digest == self._snapshot_digest:
            self._snapshot_digest = None

    @property
    def next_offsets(self) -> tuple[int, ...]:
        """The next offset to decide in each command topic, from the log (R4)."""
        return tuple(cursor.next_offset for cursor in self._cursors)

    @property
    def _cursors(self) -> tuple[Cursor, ...]:
        known = self._fold.cursors or tuple(Cursor(topic_id, 0) for topic_id in self._topic_ids)
        return tuple(
            Cursor(topic_id, cursor.next_offset) for topic_id, cursor in zip(self._topic_ids, known, strict=True)
        )

    def at(self, now: Moment) -> Moment:
        """Return the same moment in log time, which never goes back."""
        return Moment(max(now.wall_ms, self._fold.at_ms), now.monotonic_ms)
