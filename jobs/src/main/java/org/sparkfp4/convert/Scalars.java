package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.output.SourceFiles;

/**
 * The scales of some layers' tensors and of their activations. Those that follow one another in a file, as they do where
 * a producer wrote tensors by type, are read at once: in an object store each read is a request.
 */
final class Scalars {
  private static final int LONGEST_RUN = 1 << 20;
  private static final Comparator<LocatedTensor> BY_PLACE =
      Comparator.comparing(LocatedTensor::file).thenComparingLong(LocatedTensor::offset);

  private final Map<String, Float> values = new HashMap<>();

  private Scalars() {}

  /** Reads the scales of layers. */
  static Scalars read(SourceFiles files, List<QuantizedLinear> linears) throws IOException {
    TreeSet<LocatedTensor> tensors = new TreeSet<>(BY_PLACE);
    for (QuantizedLinear linear : linears) {
      tensors.add(linear.global());
      if (linear.input() != null) {
        tensors.add(linear.input());
      }
    }

    Scalars scalars = new Scalars();
    List<LocatedTensor> run = new ArrayList<>();
    for (LocatedTensor tensor : tensors) {
      if (!run.isEmpty() && !follows(run, tensor)) {
        scalars.add(files, run);
        run.clear();
      }

      run.add(tensor);
    }

    if (!run.isEmpty()) {
      scalars.add(files, run);
    }

    return scalars;
  }

  private static boolean follows(List<LocatedTensor> run, LocatedTensor tensor) {
    LocatedTensor last = run.get(run.size() - 1);
    return tensor.file().equals(last.file()) && tensor.offset() == last.offset() + last.length()
        && tensor.offset() - run.get(0).offset() < LONGEST_RUN;
  }

  private void add(SourceFiles files, List<LocatedTensor> run) throws IOException {
    LocatedTensor first = run.get(0);
    byte[] bytes = new byte[(int) run.stream().mapToLong(LocatedTensor::length).sum()];
    files.read(first.file(), first.offset(), bytes, bytes.length);
    ByteBuffer all = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    for (LocatedTensor tensor : run) {
      values.put(tensor.name(), all.getFloat((int) (tensor.offset() - first.offset())));
    }
  }

  /**
   * A layer's global scale in the form that it was made in.
   *
   * @throws org.sparkfp4.output.BadSourceException if it is not positive and finite
   */
  GlobalScale global(QuantizedLinear linear) {
    return scale(linear, linear.global(), linear.globalOrigin());
  }

  /** That of its activations; null where there is none. */
  GlobalScale input(QuantizedLinear linear) {
    return linear.input() == null ? null : scale(linear, linear.input(), linear.inputOrigin());
  }

  /** Metadata is believed where the tensor is what it would give: somebody may have changed the tensor since. */
  private GlobalScale scale(QuantizedLinear linear, LocatedTensor scalar, GlobalScale origin) {
    boolean reciprocal = linear.form().reciprocal();
    GlobalScale stored = GlobalScale.of(reciprocal, values.get(scalar.name()));
    boolean isOrigin = origin != null && GlobalScale.of(reciprocal, origin.as(reciprocal)).equals(stored);
    return SourceBytes.usable(isOrigin ? origin : stored, scalar.name() + " in " + scalar.file());
  }
}
