package org.sparkfp4.convert;

import java.util.Locale;
import org.sparkfp4.output.RoundedScales;

/** What a conversion makes, and what it could not keep, in words. */
final class ConvertSummary {
  private ConvertSummary() {}

  /** What a run would make, before it is made. */
  static String planned(ConvertPlan plan) {
    int files = plan.files().size();
    return String.format(Locale.ROOT,
        "The tensors of NVFP4 layers go into layout %s without being quantized again: %,d %s, %,d bytes of tensors.",
        plan.target(), files, files == 1 ? "file" : "files", plan.dataBytes());
  }

  static String sentence(ConvertPlan plan, String producer) {
    return String.format(Locale.ROOT,
        "The tensors of NVFP4 layers are in layout %s, converted by %s without quantizing again (%,d %s, %,d bytes of "
            + "tensors).",
        plan.target(), producer, plan.files().size(), plan.files().size() == 1 ? "file" : "files", plan.dataBytes());
  }

  static String kept(RoundedScales rounded) {
    return blocks(rounded) + globals(rounded.globals());
  }

  private static String globals(long inexact) {
    return inexact == 0 ? "" : String.format(Locale.ROOT,
        " The layout has global scales in float16: %,d are another value than before, by 2^-11 of it at most, and the"
            + " files' metadata has them as they were.", inexact);
  }

  private static String blocks(RoundedScales rounded) {
    if (rounded.modules() == 0) {
      return "Every code and every block scale is kept.";
    }

    return String.format(Locale.ROOT,
        "Codes are kept. The layout has one global scale for gate and up: of %,d matrices with a smaller one %,d block "
            + "scales were rounded anew; %,d of them are not the same value, %,d are subnormal, %,d became zero.",
        rounded.modules(), rounded.scales(), rounded.inexact(), rounded.subnormal(), rounded.flushed());
  }
}
