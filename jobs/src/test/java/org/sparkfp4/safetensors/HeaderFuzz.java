package org.sparkfp4.safetensors;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.ByteArrayInputStream;
import org.sparkfp4.fuzz.Hostile;

/** Any file as a safetensors file. */
class HeaderFuzz {
  @FuzzTest
  void header(byte[] file) {
    Hostile.read(file.length, () -> {
      SafetensorsHeader header = SafetensorsHeader.parse("file", new ByteArrayInputStream(file), file.length);

      long end = 0;
      for (TensorInfo tensor : header.tensors()) {
        assertThat(tensor.begin()).as("begin of %s", tensor).isEqualTo(end);
        assertThat(tensor.length()).as("length of %s", tensor)
            .isEqualTo(TensorSize.bytes(tensor.dtype(), tensor.shape()));
        end = tensor.end();
      }

      assertThat(header.dataStart() + end).isEqualTo(file.length);
    });
  }
}
