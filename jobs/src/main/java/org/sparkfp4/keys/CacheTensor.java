package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.LayerNorm;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * A tensor of the output, made of units that any task can write: pages, or rows.
 *
 * @param kind what is in it
 * @param layer its layer
 * @param name its own name
 * @param dtype its element type
 * @param shape its dimensions, the first of which counts units
 * @param unitBytes bytes of a unit
 * @param type of the source's elements; null of top-k rows, which are copied
 * @param tokens rows of the source; of top-k rows those to be filled
 * @param data the source, or null where it is a table
 * @param rope the latents' rotary parts, or null
 * @param slots 64-bit slots of the tokens; null: token t is in slot t
 * @param weight the norm's; null: none
 * @param bias the LayerNorm's
 */
record CacheTensor(Kind kind, String layer, String name, DType dtype, List<Long> shape, long unitBytes,
    ElementType type, long tokens, KeyTensor data, KeyTensor rope, KeyTensor slots, float[] weight, float[] bias)
    implements Serializable {
  /** What a tensor holds. */
  enum Kind {
    KEYS, LATENTS, ROWS, TOPK;

    /** Whether its units are pages of slots, not rows. */
    boolean isPaged() {
      return this == KEYS || this == LATENTS;
    }
  }

  /** Pages or rows. */
  long units() {
    return shape.get(0);
  }

  long bytes() {
    return units() * unitBytes;
  }

  TensorInfo info(long begin) {
    return new TensorInfo(name, dtype, shape, begin, begin + bytes());
  }

  /** D of keys. */
  int dim() {
    return Math.toIntExact(shape.get(2) * 32 / 17);
  }

  KeyForm keyForm(KeyOptions options) {
    LayerNorm norm = weight == null ? null : new LayerNorm(weight, bias, options.eps());
    return new KeyForm(dim(), norm, options.roundNormToBf16(), options.hadamard(), options.rule());
  }

  RmsNorm rmsNorm(KeyOptions options) {
    return new RmsNorm(weight, options.eps());
  }
}
