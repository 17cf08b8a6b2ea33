package org.sparkfp4.sink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.output.ShardOutput;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.Unit;

/**
 * A unit that comes as several slabs of rows: its codes are written as they arrive, its block scales, an eighth of
 * them, wait until the member's codes are complete.
 */
final class CutUnitCodes implements UnitWriter.SlabCodes {
  private final Unit unit;
  private final List<Slab> slabs;
  private final SlabCursor cursor;
  private final ByteSpool scales = new ByteSpool();
  private final double[] sumSquares;
  private final double[] squaredError;
  private final long[] requantized;
  private final List<ScaleCounts> counts = new ArrayList<>();
  private final long[] gptqRows;
  private final float amax;
  private final float globalScale;
  private EncodedSlab current;
  private int next;

  CutUnitCodes(Unit unit, List<Slab> slabs, SlabCursor cursor) {
    this.unit = unit;
    this.slabs = slabs;
    this.cursor = cursor;
    this.sumSquares = new double[unit.members().size()];
    this.squaredError = new double[unit.members().size()];
    this.requantized = new long[unit.members().size()];
    unit.members().forEach(member -> counts.add(new ScaleCounts()));
    this.gptqRows = new long[unit.members().size()];
    this.current = cursor.take(slabs.get(0));
    this.amax = current.amax();
    this.globalScale = current.globalScale();
  }

  @Override
  public float amax() {
    return amax;
  }

  @Override
  public float globalScale() {
    return globalScale;
  }

  @Override
  public void writePacked(int member, ShardOutput out) throws IOException {
    while (next < slabs.size() && slabs.get(next).member() == member) {
      if (current == null) {
        current = cursor.take(slabs.get(next));
      }

      Member of = unit.members().get(member);
      counts.get(member).add(current.scales());
      UnitWriter.writeRows(of, current.packed(), unit.cols() / 2, out);
      UnitWriter.writeRows(of, current.scales(), unit.cols() / Nvfp4.BLOCK, scales);
      sumSquares[member] += current.sumSquares()[0];
      squaredError[member] += current.squaredError()[0];
      requantized[member] += current.requantized()[0];
      gptqRows[member] += current.gptqRows()[0];
      current = null;
      next++;
    }
  }

  @Override
  public void writeScales(int member, ShardOutput out) throws IOException {
    scales.drainTo(out);
  }

  @Override
  public double sumSquares(int member) {
    return sumSquares[member];
  }

  @Override
  public double squaredError(int member) {
    return squaredError[member];
  }

  @Override
  public long requantized(int member) {
    return requantized[member];
  }

  @Override
  public ScaleCounts scaleCounts(int member) {
    return counts.get(member);
  }

  @Override
  public long gptqRows(int member) {
    return gptqRows[member];
  }
}
