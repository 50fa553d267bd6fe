"""A row that one transaction has added to without looking, as the transaction sees it in the execution step.

Increments of concurrent branches do not collide, because none of them sees the row, and the order of the serial
execution is known when they are added up: by chain, then as each chain made them. A branch that reads or writes the row
beside one that adds to it does collide. A branch sees its own increments and those of the chains above it. Only a
branch that reads or writes *touches* the row, so validation meets the increments in a step of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from styx.model.context import PATH_STEP_BYTES
from styx.native.interpreted import native, plain_stores
from styx.relational.increment import Increment, incremented
from styx.worker.chains import concurrent
from styx.worker.footprint import EntityCell, RowCell


@native
@plain_stores
class IncrementedRow(EntityCell, eq=False, gc=False):
    """It has the place that a `RowCell` had.

    `increments` are those that no later write of their chain has covered, by chain. `chain` stays None as long as
    nobody has touched the row. `sums`, by chain, are how many of its increments have been added up, and what is visible
    to it with them: the chains above a chain that runs have ended.
    """

    table: str = ""
    overwritten: list[bytes | None] | None = None
    increments: dict[bytes, list[Increment]] | None = None
    sums: dict[bytes, tuple[int, bytes | None]] | None = None

    def read(self, chain: bytes) -> bytes | None:
        """As `EntityCell.read`."""
        self._touch(chain)
        return self.visible(chain)

    def write(self, chain: bytes, value: bytes | None) -> None:
        """As `RowCell.write`."""
        footprint = self.footprint
        self._touch(chain)
        touched, values = self._shared()
        if chain not in values:
            if not footprint.collided and any(concurrent(chain, other) for other in touched):
                footprint.collided = True
        else:
            self._keep(values[chain])
        self._increments().pop(chain, None)
        self._sums().pop(chain, None)
        values[chain] = value
        self.written = True
        if footprint.rows_here().wrote(chain, self):
            footprint.collided = True

    def add(self, chain: bytes, increment: Increment) -> bool:
        """As `Cell.add`."""
        footprint, increments = self.footprint, self._increments()
        touched, _ = self._shared()
        before, writer = self._written_above(chain)
        if increment.zero is None and before is None:
            self._touch(chain)  # that it is missing has been read
            return False
        if writer == chain:
            self.write(chain, incremented(before, (increment,)))
            return True
        mine = increments.get(chain)
        if mine is None:
            mine = increments[chain] = []
            if not footprint.collided and any(concurrent(chain, other) for other in touched):
                footprint.collided = True
        mine.append(increment)
        if footprint.rows_here().wrote(chain, self):
            footprint.collided = True
        return True

    def _keep(self, last: bytes | None) -> None:
        """As `RowCell._keep`."""
        if self.overwritten is None:
            self.overwritten = []
        if last not in self.overwritten:
            self.overwritten.append(last)

    def _touch(self, chain: bytes) -> None:
        """Notes a branch that reads or writes."""
        footprint = self.footprint
        if self.chain is None:
            self.chain = chain
        touched, _ = self._shared()
        if not footprint.collided and chain not in touched:
            touched.append(chain)
            if any(concurrent(chain, writer) for writer in self.writers()):
                footprint.collided = True

    def _shared(self) -> tuple[list[bytes], dict[bytes, bytes | None]]:
        if self.touched is None or self.values is None:
            self.touched = [] if self.chain is None else [self.chain]
            self.values = {self.chain: self.value} if self.written and self.chain is not None else {}
        return self.touched, self.values

    def _increments(self) -> dict[bytes, list[Increment]]:
        if self.increments is None:
            self.increments = {}
        return self.increments

    def _sums(self) -> dict[bytes, tuple[int, bytes | None]]:
        if self.sums is None:
            self.sums = {}
        return self.sums

    def _written_above(self, chain: bytes) -> tuple[bytes | None, bytes | None]:
        """The latest value visible to `chain` without the increments on it, and the chain that wrote it, None if it is
        that of the epoch's beginning.
        """
        _, values = self._shared()
        for end in range(len(chain), -1, -PATH_STEP_BYTES):
            if chain[:end] in values:
                return values[chain[:end]], chain[:end]
        return self.found(self.key), None

    # What the transaction has made of the row ------------------------------------------------------------------

    def visible(self, chain: bytes) -> bytes | None:
        """As `RowCell.visible`; also of a chain that sees no write."""
        value, writer = self._written_above(chain)
        increments, sums = self._increments(), self._sums()
        first = 0 if writer is None else len(writer) + PATH_STEP_BYTES
        for end in range(first, len(chain) + 1, PATH_STEP_BYTES):
            above = chain[:end]
            made = increments.get(above)
            if made is not None:
                count, value = sums.get(above, (0, value))
                if count < len(made):
                    value = incremented(value, made[count:])
                    sums[above] = (len(made), value)
        return value

    def looked_at(self, chain: bytes) -> bytes | None:
        """As `RowCell.looked_at`."""
        return self.visible(chain)

    @property
    def comes_and_goes(self) -> bool:
        """Whether the increments need no row, and may remove it."""
        for made in self._increments().values():
            return made[0].zero is not None
        return False

    def pending(self) -> list[Increment]:
        """All increments in the order of the serial execution, of a transaction that has written nothing here."""
        increments = self._increments()
        return [increment for chain in sorted(increments) for increment in increments[chain]]

    def final_value(self) -> bytes | None:
        """As `EntityCell.final_value`, of a transaction that has written. Without a collision all who added below the
        last writer did so on top of what it wrote, and all others before.
        """
        _, values = self._shared()
        writer = max(values, key=len)
        increments, above = self._increments(), len(writer)
        later = [chain for chain in sorted(increments) if len(chain) > above and chain.startswith(writer)]
        return incremented(values[writer], [each for chain in later for each in increments[chain]])

    def images(self) -> list[bytes | None]:
        """As `RowCell.images`. What is added moves a row in no index, unless it makes it appear or vanish."""
        _, values = self._shared()
        images: list[bytes | None] = [self.found(self.key), *values.values()]
        if self.comes_and_goes:
            images += [next(iter(self._increments().values()))[0].zero, None]
        return images if self.overwritten is None else images + self.overwritten

    def written_beside(self, chain: bytes) -> bool:
        """As `RowCell.written_beside`."""
        return any(concurrent(chain, writer) for writer in self.writers())

    def writers(self) -> Iterable[bytes]:
        """As `RowCell.writers`, with those who added."""
        _, values = self._shared()
        return [*values, *self._increments()]


AnyRow = RowCell | IncrementedRow
"""A row as a transaction sees it in the execution step."""
