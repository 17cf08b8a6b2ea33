package org.sparkfp4.plan;

import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * A tensor of the source whose bytes the output has too.
 *
 * @param source where the source has it; its dtype stays
 * @param name its name in the output
 * @param shape its dimensions in the output, of as many elements
 */
public record CarriedTensor(LocatedTensor source, String name, List<Long> shape) {
  public CarriedTensor {
    shape = List.copyOf(shape);
  }
}
