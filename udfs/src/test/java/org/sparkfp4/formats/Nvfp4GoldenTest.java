package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The reference against the bytes of the producers' own functions. */
class Nvfp4GoldenTest {
  record Case(GoldenFile file, String name, String packed, String scales, String globalScale, Nvfp4Recipe recipe) {
    @Override
    public String toString() {
      return name + " " + recipe;
    }
  }

  static List<Case> cases() {
    List<Case> cases = new ArrayList<>();
    for (String fileName : List.of("nvfp4_tensors", "nvfp4_ct_global_scale")) {
      GoldenFile file = GoldenFile.open(fileName);
      for (String tensor : file.names()) {
        if (tensor.endsWith(".w")) {
          String name = tensor.substring(0, tensor.length() - 2);
          if (file.has(name + ".modelopt.weight")) {
            cases.add(new Case(file, name, name + ".modelopt.weight", name + ".modelopt.weight_scale",
                name + ".modelopt.weight_scale_2", Nvfp4Recipe.MODELOPT));
          }

          if (file.has(name + ".ct.weight_packed")) {
            cases.add(new Case(file, name, name + ".ct.weight_packed", name + ".ct.weight_scale",
                name + ".ct.weight_global_scale", Nvfp4Recipe.COMPRESSED_TENSORS));
          }
        }
      }
    }

    return cases;
  }

  @Test
  void everyCaseIsFound() {
    assertThat(cases()).filteredOn(c -> c.recipe == Nvfp4Recipe.MODELOPT).hasSize(9);
    assertThat(cases()).filteredOn(c -> c.recipe == Nvfp4Recipe.COMPRESSED_TENSORS).hasSize(7 + 4);
  }

  @ParameterizedTest
  @MethodSource("cases")
  void bytesAreTheProducers(Case golden) {
    GoldenFile.Tensor w = golden.file.tensor(golden.name + ".w");
    ElementType type = ElementType.of(w.dtype());

    Encoded encoded = Encoded.of(golden.recipe, type, w.data(), w.shape()[0], w.shape()[1]);

    assertThat(encoded.globalScale()).isEqualTo(golden.file.tensor(golden.globalScale).scalar());
    assertThat(encoded.scales()).isEqualTo(golden.file.tensor(golden.scales).bytes());
    assertThat(encoded.packed()).isEqualTo(golden.file.tensor(golden.packed).bytes());
  }

  @Test
  void printedVector() throws Exception {
    ByteBuffer w = printedSource();
    assertThat(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(w.array())))
        .isEqualTo("34e99582be661225e61a719ef352766cdb99f06509d90c3343a71ed78c4d2f43");

    Encoded modelopt = Encoded.of(Nvfp4Recipe.MODELOPT, ElementType.BF16, w, 4, 64);

    assertThat(Float.floatToRawIntBits(modelopt.globalScale())).isEqualTo(0x38be79e8);
    assertThat(HexFormat.of().formatHex(modelopt.scales()))
        .isEqualTo("7e7d7e7c" + "7e387e7b" + "0e7e7e7a" + "7e7e7e7a");
    String packed = "7f6656452381a9ccedeeff776656452390badcedeeff676656451298cbddeeff"
        + "7f6766453402a9cb000000000000000081a9cbddeeff776666452391caddeeff"
        + "f0776655341290badcedfe7f6766553412a9cbdceefe7f6767563402b9dceeff"
        + "fe776656452381baccedeeff776655441290badcedee7f6777664513a8dcedfe";
    assertThat(HexFormat.of().formatHex(modelopt.packed())).isEqualTo(packed);

    Encoded ct = Encoded.of(Nvfp4Recipe.COMPRESSED_TENSORS, ElementType.BF16, w, 4, 64);

    assertThat(ct.globalScale()).isEqualTo(11008f);
    assertThat(HexFormat.of().formatHex(ct.scales())).isEqualTo("7e7d7e7c" + "7e207e7b" + "0e7e7e7a" + "7e7e7e7a");
    assertThat(HexFormat.of().formatHex(ct.packed())).isEqualTo(packed);
  }

  /** [4, 64]: a sawtooth, with a block of zeros, a block of small values and a -0.0. */
  private static ByteBuffer printedSource() {
    float[] w = new float[256];
    for (int n = 0; n < w.length; n++) {
      w[n] = BFloat16.round((n * 7919 % 2003 - 1001) / 4096f);
    }

    for (int i = 0; i < 16; i++) {
      w[64 + 16 + i] = 0;
      w[128 + i] *= 0x1p-14f;
    }

    w[128] = -0f;
    return Encoded.bf16(w);
  }
}
