package org.sparkfp4.sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.output.LayerError;
import org.sparkfp4.output.ShardOutput;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.plan.Slab;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/** Writes the tensors that a unit becomes, in the plan's order. */
final class UnitWriter {
  private final ShardOutput out;

  UnitWriter(ShardOutput out) {
    this.out = out;
  }

  /** Takes the unit's slabs from {@code cursor}, writes its tensors, and says how exact each member is. */
  List<LayerError> write(ShardItem.Quantized item, SlabCursor cursor) throws IOException {
    Unit unit = item.unit();
    List<Slab> slabs = cursor.begin(unit);
    SlabCodes codes =
        slabs.get(0).isWhole()
            ? new WholeUnitCodes(unit, cursor.take(slabs.get(0)))
            : new CutUnitCodes(unit, slabs, cursor);
    for (UnitTensor tensor : item.tensors()) {
      long before = out.length();
      switch (tensor.part()) {
        case PACKED -> codes.writePacked(tensor.member(), out);
        case SCALES -> codes.writeScales(tensor.member(), out);
        case SCALE_WORDS -> codes.writeScales(tensor.member(), new ScaleWordOutput(out));
        case GLOBAL_SCALE -> out.write(scalar(codes.globalScale()));
        case INPUT_SCALE -> out.write(scalar(item.inputScale().value()));
      }

      long written = out.length() - before;
      if (written != tensor.output().length()) {
        throw new IllegalStateException(
            "Cannot write " + tensor.output().name() + ": it has " + written + " bytes, planned were "
                + tensor.output().length());
      }
    }

    List<LayerError> errors = new ArrayList<>();
    for (int m = 0; m < unit.members().size(); m++) {
      Member member = unit.members().get(m);
      ScaleCounts scales = codes.scaleCounts(m);
      errors.add(new LayerError(member.module(), codes.amax(), codes.sumSquares(m), codes.squaredError(m),
          codes.requantized(m), codes.gptqRows(m), scales.subnormal(), scales.largest()));
    }

    return errors;
  }

  /** Writes codes or scales of whole rows of a member, {@code rowBytes} each, as its layout has them. */
  static void writeRows(Member member, ByteBuffer bytes, long rowBytes, ShardOutput out) throws IOException {
    if (member.isStacked()) {
      new StackedBytes(member.rowsTogether(), rowBytes).write(bytes, out);
    } else {
      out.write(bytes);
    }
  }

  private static ByteBuffer scalar(float value) {
    return ByteBuffer.allocate(Float.BYTES).order(ByteOrder.LITTLE_ENDIAN).putFloat(0, value);
  }

  /** The codes of a unit, member by member, however its slabs were cut. */
  interface SlabCodes {
    float amax();

    /** The unit's global scale as the layout stores it. */
    float globalScale();

    /** Writes a member's codes; members in order. */
    void writePacked(int member, ShardOutput out) throws IOException;

    /** Writes a member's block scales, after its codes. */
    void writeScales(int member, ShardOutput out) throws IOException;

    double sumSquares(int member);

    double squaredError(int member);

    /** Blocks that an exact cast had no scale for. */
    long requantized(int member);

    /** What a member's block scales, once written, are like. */
    ScaleCounts scaleCounts(int member);

    /** Rows whose codes are GPTQ's. */
    long gptqRows(int member);
  }

  /** A unit that came as one slab. */
  private static final class WholeUnitCodes implements SlabCodes {
    private final Unit unit;
    private final EncodedSlab slab;
    private final List<ScaleCounts> counts = new ArrayList<>();

    WholeUnitCodes(Unit unit, EncodedSlab slab) {
      this.unit = unit;
      this.slab = slab;
      unit.members().forEach(member -> counts.add(new ScaleCounts()));
    }

    @Override
    public float amax() {
      return slab.amax();
    }

    @Override
    public float globalScale() {
      return slab.globalScale();
    }

    @Override
    public void writePacked(int member, ShardOutput out) throws IOException {
      writePart(slab.packed(), member, unit.cols() / 2, out);
    }

    @Override
    public void writeScales(int member, ShardOutput out) throws IOException {
      counts.get(member).add(part(slab.scales(), member, unit.cols() / Nvfp4.BLOCK));
      writePart(slab.scales(), member, unit.cols() / Nvfp4.BLOCK, out);
    }

    private void writePart(ByteBuffer all, int member, long bytesPerRow, ShardOutput out) throws IOException {
      writeRows(unit.members().get(member), part(all, member, bytesPerRow), bytesPerRow, out);
    }

    private ByteBuffer part(ByteBuffer all, int member, long bytesPerRow) {
      long from = 0;
      for (int m = 0; m < member; m++) {
        from += unit.members().get(m).weight().rows() * bytesPerRow;
      }

      long length = unit.members().get(member).weight().rows() * bytesPerRow;
      return all.slice(all.position() + Math.toIntExact(from), Math.toIntExact(length));
    }

    @Override
    public double sumSquares(int member) {
      return slab.sumSquares()[member];
    }

    @Override
    public double squaredError(int member) {
      return slab.squaredError()[member];
    }

    @Override
    public long requantized(int member) {
      return slab.requantized()[member];
    }

    @Override
    public ScaleCounts scaleCounts(int member) {
      return counts.get(member);
    }

    @Override
    public long gptqRows(int member) {
      return slab.gptqRows()[member];
    }
  }
}
