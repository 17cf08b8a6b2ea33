package org.sparkfp4;

import java.util.List;
import org.sparkfp4.safetensors.DType;

/**
 * A small tensor, all of it.
 *
 * @param data its bytes, as a file has them
 */
public record StoredTensor(DType dtype, List<Long> shape, byte[] data) {}
