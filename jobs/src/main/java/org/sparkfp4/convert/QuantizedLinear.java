package org.sparkfp4.convert;

import java.io.Serializable;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * A linear layer that a checkpoint stores by itself.
 *
 * @param module its name
 * @param form how its tensors are named and its scalars stored
 * @param codes E2M1, U8 {@code [rows, K/2]}
 * @param scales E4M3 {@code [rows, K/16]}
 * @param global the global scale, F32
 * @param input that of the activations, or null
 * @param globalOrigin what the file's metadata says the global scale was made from, or null
 * @param inputOrigin the same of the activations', or null
 */
record QuantizedLinear(
    String module,
    ModuleForm form,
    LocatedTensor codes,
    LocatedTensor scales,
    LocatedTensor global,
    LocatedTensor input,
    GlobalScale globalOrigin,
    GlobalScale inputOrigin)
    implements Serializable {
  long rows() {
    return codes.shape().get(0);
  }

  long cols() {
    return 2 * codes.shape().get(1);
  }
}
