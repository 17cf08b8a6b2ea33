package org.sparkfp4.sink;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.Unit;

/**
 * A unit that comes as several slabs of rows: its codes are written as they arrive, its block scales, an eighth of
 * them, wait in memory until the member's codes are complete.
 */
final class CutUnitCodes implements UnitWriter.SlabCodes {
  private final List<Slab> slabs;
  private final SlabCursor cursor;
  private final ByteArrayOutputStream scales = new ByteArrayOutputStream();
  private final double[] sumSquares;
  private final double[] squaredError;
  private final long[] requantized;
  private final float amax;
  private final float globalScale;
  private EncodedSlab current;
  private int next;

  CutUnitCodes(Unit unit, List<Slab> slabs, SlabCursor cursor) {
    this.slabs = slabs;
    this.cursor = cursor;
    this.sumSquares = new double[unit.members().size()];
    this.squaredError = new double[unit.members().size()];
    this.requantized = new long[unit.members().size()];
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

      out.write(current.packed());
      ByteBuffer part = current.scales();
      byte[] copy = new byte[part.remaining()];
      part.get(part.position(), copy);
      scales.writeBytes(copy);
      sumSquares[member] += current.sumSquares()[0];
      squaredError[member] += current.squaredError()[0];
      requantized[member] += current.requantized()[0];
      current = null;
      next++;
    }
  }

  @Override
  public void writeScales(int member, ShardOutput out) throws IOException {
    out.write(ByteBuffer.wrap(scales.toByteArray()));
    scales.reset();
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
}
