package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.Fc;
import org.sparkfp4.output.RoundedScales;
import org.sparkfp4.safetensors.TensorInfo;

/** Writes the items of a file. What it holds does not grow with the file: a piece of a tensor, or an expert. */
final class ItemWriter {
  private static final int PIECE = 1 << 20;

  private final SourceBytes source;
  private final ItemSink out;
  private final byte[] piece = new byte[PIECE];
  private long written;
  private RoundedScales rounded = RoundedScales.NONE;

  ItemWriter(SourceBytes source, ItemSink out) {
    this.source = source;
    this.out = out;
  }

  /** What could not be kept so far. */
  RoundedScales rounded() {
    return rounded;
  }

  void write(ConvertItem item) throws IOException {
    written = 0;
    if (item instanceof ConvertItem.Copied copied) {
      copy(copied.source(), null);
    } else if (item instanceof ConvertItem.Linears linears) {
      writeLinears(linears);
    } else if (item instanceof ConvertItem.Expert expert) {
      writeExpert(expert);
    } else if (item instanceof ConvertItem.Layer layer) {
      LayerWriter writer = new LayerWriter(layer, source, this::put);
      writer.write();
      rounded = rounded.plus(writer.rounded());
    }

    if (written != item.length()) {
      throw new IllegalStateException("Cannot write " + names(item.outputs()) + ": " + written + " bytes, planned were "
          + item.length());
    }
  }

  private static String names(List<TensorInfo> tensors) {
    return tensors.get(0).name() + (tensors.size() > 1 ? " to " + tensors.get(tensors.size() - 1).name() : "");
  }

  private void put(ByteBuffer bytes) throws IOException {
    written += bytes.remaining();
    out.write(bytes);
  }

  /** Copies a tensor by pieces; scales of {@code linear}, if there is one, are looked at as they pass. */
  private void copy(LocatedTensor tensor, QuantizedLinear linear) throws IOException {
    for (long done = 0; done < tensor.length(); ) {
      int length = (int) Math.min(PIECE, tensor.length() - done);
      source.read(tensor, done, piece, length);
      if (linear != null) {
        byte[] scales = length == PIECE ? piece : Arrays.copyOf(piece, length);
        source.requireScales(tensor.name(), tensor, scales, done, linear.cols());
      }

      put(ByteBuffer.wrap(piece, 0, length));
      done += length;
    }
  }

  private void writeLinears(ConvertItem.Linears item) throws IOException {
    boolean reciprocal = item.form().reciprocal();
    Scalars scalars = source.scalars(item.sources());
    for (QuantizedLinear linear : item.sources()) {
      putScalar(scalars.global(linear).as(reciprocal));
      GlobalScale input = scalars.input(linear);
      if (input != null) {
        putScalar(input.as(reciprocal));
      }
    }

    for (QuantizedLinear linear : item.sources()) {
      copy(linear.codes(), null);
      copy(linear.scales(), linear);
    }
  }

  private void writeExpert(ConvertItem.Expert item) throws IOException {
    ExpertLayer layer = item.layer();
    ExpertReader reader = ExpertReader.of(layer, source);
    boolean reciprocal = item.form().reciprocal();
    for (int p = 0; p < layer.projections().size(); p++) {
      putScalar(reader.global(item.expert(), p).as(reciprocal));
      GlobalScale input = reader.input(item.expert(), p);
      if (input != null) {
        putScalar(input.as(reciprocal));
      }
    }

    for (Fc fc : Fc.values()) {
      byte[][] codes = reader.codes(fc, item.expert());
      byte[][] scales = reader.scales(fc, item.expert());
      for (int m = 0; m < codes.length; m++) {
        put(ByteBuffer.wrap(codes[m]));
        put(ByteBuffer.wrap(scales[m]));
      }
    }
  }

  private void putScalar(float value) throws IOException {
    put(ByteBuffer.allocate(Float.BYTES).order(ByteOrder.LITTLE_ENDIAN).putFloat(0, value));
  }
}
