package org.sparkfp4.calibration;

import java.io.Serializable;
import java.util.Objects;

/**
 * Figures of a module's input.
 *
 * @param module the linear layer
 * @param file the file of the folder that has its tensors
 * @param cols K
 * @param tokens how many tokens were seen
 * @param heldOutTokens how many of them are in the held-out Hessian alone; 0 where there is none
 * @param amax the largest |x|
 * @param percentile a bound that one block of 16 in ten thousand is above, none of zeros counted
 * @param headroom the amax that leaves most room above what was seen while one block in a hundred is the smallest that
 *     an E4M3 scale still holds as a normal number
 */
public record ModuleStatistics(
    String module,
    String file,
    int cols,
    long tokens,
    long heldOutTokens,
    float amax,
    float percentile,
    float headroom)
    implements Serializable {
  private static final double MOST = 0.9999;
  private static final double LEAST = 0.01;

  /**
   * The ratio of the amax to the block amax that is reached by one block in a hundred, as NVIDIA Model Optimizer's
   * nvfp4_act_headroom has it: of the 448 / 2^-6 = 28672 between the ends of E4M3's normal numbers, more than half.
   */
  private static final float HEADROOM = 16384;

  public ModuleStatistics {
    Objects.requireNonNull(module, "module");
    Objects.requireNonNull(file, "file");
  }

  /** Whether another module's figures are those of the same input. */
  boolean sameAs(ModuleStatistics other) {
    return cols == other.cols && tokens == other.tokens && heldOutTokens == other.heldOutTokens && amax == other.amax
        && percentile == other.percentile && headroom == other.headroom;
  }

  static ModuleStatistics of(EntrySums sums, String file, HessianKind hessian) {
    long[] histogram = sums.histogram();
    float most = BlockAmaxHistogram.atMost(histogram, MOST, sums.amax());
    float least = BlockAmaxHistogram.atLeast(histogram, LEAST);
    return new ModuleStatistics(
        sums.entry().module(), file, sums.entry().cols(), sums.tokens(),
        hessian == HessianKind.FULL ? sums.heldOutTokens() : 0, sums.amax(), most,
        Math.min(Float.MAX_VALUE, Math.max(HEADROOM * least, most)));
  }
}
