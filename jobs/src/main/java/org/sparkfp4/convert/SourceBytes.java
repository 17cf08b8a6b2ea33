package org.sparkfp4.convert;

import java.io.IOException;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.SourceFiles;

/** Bytes of the source's tensors, and what is asked of them. */
final class SourceBytes {
  /** The E4M3 byte of 448; above it are NaN and the negative ones. */
  private static final int LARGEST_SCALE = 0x7E;

  private final SourceFiles files;
  private final SourceFiles aside;
  private final ExpertArranger arranger;

  /**
   * @param files records what is read
   * @param aside reads what is read elsewhere too: a piece that is recorded twice has no checksum of its own
   * @param arranger of the task
   */
  SourceBytes(SourceFiles files, SourceFiles aside, ExpertArranger arranger) {
    this.files = files;
    this.aside = aside;
    this.arranger = arranger;
  }

  /** The same bytes, read without a record. */
  SourceBytes unrecorded() {
    return new SourceBytes(aside, aside, arranger);
  }

  /** Takes experts out of a runtime's layout, and into it. */
  ExpertArranger arranger() {
    return arranger;
  }

  /** All of a tensor. */
  byte[] all(LocatedTensor tensor) throws IOException {
    return part(tensor, 0, tensor.length());
  }

  /** The part of a tensor with that number, parts of so many bytes. */
  byte[] part(LocatedTensor tensor, long number, long length) throws IOException {
    byte[] bytes = new byte[Math.toIntExact(length)];
    read(tensor, number * length, bytes, bytes.length);
    return bytes;
  }

  void read(LocatedTensor tensor, long from, byte[] into, int length) throws IOException {
    files.read(tensor, from, into, length);
  }

  /** The scales of layers. */
  Scalars scalars(List<QuantizedLinear> linears) throws IOException {
    return Scalars.read(files, linears);
  }

  static GlobalScale usable(GlobalScale scale, String name) {
    if (!scale.isUsable()) {
      throw new BadSourceException("Invalid global scale of " + name + ": it is " + scale.value()
          + ", must be positive and finite, and so must its reciprocal be; quantize the checkpoint again");
    }

    return scale;
  }

  /**
   * Requires block scales that runtimes take.
   *
   * @param name what the message calls their tensor
   * @param tensor that they are of
   * @param scales row-major
   * @param first number of the first of them in the matrix
   * @param cols K
   * @throws BadSourceException if one is negative or NaN
   */
  void requireScales(String name, LocatedTensor tensor, byte[] scales, long first, long cols) {
    long bad = arranger.firstAbove(scales, LARGEST_SCALE);
    if (bad >= 0) {
      long place = first + bad;
      long columns = cols / Nvfp4.BLOCK;
      throw new BadSourceException(String.format(
          "Invalid block scale in %s: element [%d, %d] is 0x%02x, which is %s, in file %s; no runtime takes it, "
              + "quantize the checkpoint again", name, place / columns, place % columns, scales[(int) bad] & 0xFF,
          (scales[(int) bad] & 0x7F) == 0x7F ? "NaN" : "negative", tensor.file()));
    }
  }
}
