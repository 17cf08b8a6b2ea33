package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.layouts.ExpertArrangement;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.Fc;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.output.RoundedScales;

/** Writes the tensors of a layer whose experts are stacked, an expert at a time. */
final class LayerWriter {
  private final ExpertLayer layer;
  private final ExpertLayout layout;
  private final SourceBytes source;
  private final ExpertReader reader;
  private final ItemSink out;
  private final LayerScales scales;
  private RoundedScales rounded = RoundedScales.NONE;

  LayerWriter(ConvertItem.Layer item, SourceBytes source, ItemSink out) throws IOException {
    this.layer = item.layer();
    this.layout = item.layout();
    this.source = source;
    this.reader = ExpertReader.of(layer, source);
    this.out = out;
    this.scales = LayerScales.read(layer, reader);
  }

  /** What could not be kept. */
  RoundedScales rounded() {
    return rounded;
  }

  void write() throws IOException {
    scales.requireHeldBy(layout);
    for (StackPart part : layout.parts()) {
      switch (part) {
        case FC1_CODES, FC2_CODES -> writeCodes(part.fc());
        case FC1_SCALES, FC2_SCALES -> writeScales(part.fc());
        case FC1_GLOBAL, FC2_GLOBAL -> writeGlobals(part.fc());
        case FC1_INPUT, FC2_INPUT -> writeOnes();
        case SCORE_BIAS -> writeBias();
      }
    }
  }

  private void writeCodes(Fc fc) throws IOException {
    ExpertArrangement arrangement = layout.arrangement(layer.shape(), fc);
    for (int e = 0; e < layer.shape().experts(); e++) {
      out.write(source.arranger().codes(arrangement, reader.codes(fc, e)));
    }
  }

  private void writeScales(Fc fc) throws IOException {
    ExpertArrangement arrangement = layout.arrangement(layer.shape(), fc);
    for (int e = 0; e < layer.shape().experts(); e++) {
      byte[][] members = reader.scales(fc, e);
      rounded = rounded.plus(scales.round(fc, e, members));
      out.write(source.arranger().scales(arrangement, members));
    }
  }

  private void writeGlobals(Fc fc) throws IOException {
    ByteBuffer globals = buffer();
    long inexact = 0;
    for (int e = 0; e < layer.shape().experts(); e++) {
      float factor = scales.factor(fc, e);
      layout.putGlobal(globals, factor);
      inexact += layout.keepsGlobal(factor) ? 0 : 1;
    }

    rounded = rounded.plus(new RoundedScales(0, 0, 0, 0, 0, inexact));

    out.write(globals.flip());
  }

  /** A runtime finds the scales of its activations by itself; the checkpoint's are in the metadata. */
  private void writeOnes() throws IOException {
    ByteBuffer ones = buffer();
    for (int e = 0; e < layer.shape().experts(); e++) {
      ones.putFloat(1);
    }

    out.write(ones.flip());
  }

  /** Zeros for a router that has none. */
  private void writeBias() throws IOException {
    ByteBuffer bias = buffer();
    ByteBuffer stored = layer.bias() == null
        ? null
        : ByteBuffer.wrap(source.unrecorded().all(layer.bias())).order(ByteOrder.LITTLE_ENDIAN);
    for (int e = 0; e < layer.shape().experts(); e++) {
      bias.putFloat(stored == null ? 0 : switch (layer.bias().dtype()) {
        case BF16 -> BFloat16.toFloat(stored.getShort());
        case F16 -> Float16.toFloat(stored.getShort());
        default -> stored.getFloat();
      });
    }

    out.write(bias.flip());
  }

  private ByteBuffer buffer() {
    return ByteBuffer.allocate(layer.shape().experts() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  }
}
