package org.sparkfp4.sink;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.sparkfp4.formats.InvalidImportanceException;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.Unit;

/** Goes through the slabs of a shard in the plan's order and holds the rows that arrive against it. */
final class SlabCursor {
  private final OutputShard shard;
  private final long slabBytes;
  private final Iterator<InternalRow> rows;
  private final EncodedSlabReader reader;
  private final SourcePieces pieces;
  private final SinkMetrics metrics;
  private Unit unit;
  private List<Slab> slabs;
  private Slab awaited;

  /** {@code pieces} takes what the rows were read from, {@code metrics} what they came to. */
  SlabCursor(
      OutputShard shard,
      long slabBytes,
      Iterator<InternalRow> rows,
      EncodedSlabReader reader,
      SourcePieces pieces,
      SinkMetrics metrics) {
    this.shard = shard;
    this.slabBytes = slabBytes;
    this.rows = rows;
    this.reader = reader;
    this.pieces = pieces;
    this.metrics = metrics;
  }

  /** Begins a unit and gives its slabs. */
  List<Slab> begin(Unit next) {
    unit = next;
    slabs = next.slabs(slabBytes);
    return slabs;
  }

  /**
   * The next slab, which must be {@code expected}. Its buffers are good until the next call.
   *
   * @throws IllegalStateException when another slab or none arrives: the query changed the planned source's order
   */
  EncodedSlab take(Slab expected) {
    awaited = expected;
    if (!rows.hasNext()) {
      throw outOfOrder("no more rows");
    }

    EncodedSlab slab = reader.read(rows.next());
    if (slab.unit() != expected.unit() || slab.index() != expected.index()) {
      throw outOfOrder("unit " + slab.unit() + " slab " + slab.index());
    }

    pieces.add(unit, expected, slab.checksums());
    metrics.addSlab(slab);
    return slab;
  }

  /** Asserts that every row was taken. */
  void requireEnd() {
    if (rows.hasNext()) {
      throw new IllegalStateException("Cannot finish " + shard.file() + ": more rows arrived than the plan has slabs");
    }
  }

  private IllegalStateException outOfOrder(String found) {
    return new IllegalStateException(
        "Cannot write " + shard.file() + ": expected unit " + unit.id() + " (" + unit.name() + ") slab "
            + awaited.index() + ", found " + found + "; the query must keep the rows of the planned source");
  }

  /** What is wrong with the awaited slab's source, for the user: the tensor, the index in it, its file, the remedy. */
  String describe(NonFiniteException bad, String input) {
    int index = awaited.isWhole() ? bad.segment() : awaited.member();
    Member member = unit.members().get(index);
    long element = bad.index() + (awaited.isWhole() ? 0 : awaited.rowOffset() * unit.cols());
    return NonFiniteText.of(
        member.weight(), member.scale(), SourceScheme.parse(unit.scheme()), element, bad.value(), input);
  }

  /** What is wrong with the statistics of the awaited slab's unit, for the user. */
  String describe(InvalidImportanceException bad) {
    return "Invalid statistics of " + unit.name() + ": " + bad.value() + " for column " + bad.column()
        + ", must be finite, and not negative for a square; make the statistics anew and start again with --overwrite";
  }
}
