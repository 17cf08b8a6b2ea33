package org.sparkfp4.jobs;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.safetensors.DType;

/** Safetensors files of keys for tests. */
final class KeyFiles {
  private final Map<String, StoredTensor> tensors = new LinkedHashMap<>();
  private final Random random = new Random(31);

  KeyFiles gaussian(String name, DType dtype, double mean, long... shape) {
    int elements = 1;
    for (long side : shape) {
      elements *= (int) side;
    }

    ByteBuffer data = ByteBuffer.allocate(elements * ElementType.of(dtype.name()).bytes())
        .order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      float x = (float) (mean + random.nextGaussian());
      switch (dtype) {
        case BF16 -> data.putShort(BFloat16.fromFloat(x));
        case F16 -> data.putShort(Float16.fromFloat(x));
        default -> data.putFloat(x);
      }
    }

    return put(name, dtype, data.array(), shape);
  }

  KeyFiles slots(String name, long... slots) {
    ByteBuffer data = ByteBuffer.allocate(slots.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    data.asLongBuffer().put(slots);
    return put(name, DType.I64, data.array(), slots.length);
  }

  KeyFiles put(String name, DType dtype, byte[] data, long... shape) {
    tensors.put(name, new StoredTensor(dtype, Arrays.stream(shape).boxed().toList(), data));
    return this;
  }

  byte[] bytes(String name) {
    return tensors.get(name).data();
  }

  /** Writes the file, in a folder that is made. */
  Path write(Path file) throws IOException {
    Files.createDirectories(file.getParent());
    CheckpointFiles.write(file, tensors);
    return file;
  }
}
