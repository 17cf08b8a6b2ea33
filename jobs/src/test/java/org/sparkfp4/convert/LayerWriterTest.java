package org.sparkfp4.convert;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.formats.E4M3;
import org.sparkfp4.kernels.LayoutKernels;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.RoundedScales;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.safetensors.TensorInfo;

class LayerWriterTest {
  @TempDir
  private Path folder;

  /** What was written of a layer, by the last part of the tensors' names. */
  private record Written(Map<String, byte[]> tensors, RoundedScales rounded, StackDescription description) {
    String sha256(String name) throws Exception {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(tensors.get(name)));
    }
  }

  private Written write(ExpertFiles files, ExpertLayout layout) throws IOException {
    Configuration conf = new Configuration();
    Checkpoint checkpoint = Checkpoint.open(conf, files.write(folder.resolve("source")).toString());
    ExpertLayer layer = SourceModel.of(conf, checkpoint).layers().get(0);
    ConvertItem.Layer item =
        new ConvertItem.Layer(layer, layout, InitializerNames.byPath().tensors(layer, 0, layout));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (SourceFiles read = new SourceFiles(
        checkpoint.path().toString(), checkpoint.sourceFiles(), conf, new SourcePieces())) {
      SourceBytes source = new SourceBytes(read, read, new ExpertArranger(LayoutKernels.forTier("auto")));
      ItemWriter writer = new ItemWriter(source, bytes -> {
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        out.writeBytes(copy);
      });
      writer.write(item);
      Map<String, byte[]> tensors = new TreeMap<>();
      ByteBuffer all = ByteBuffer.wrap(out.toByteArray());
      for (TensorInfo tensor : item.outputs()) {
        byte[] data = new byte[(int) tensor.length()];
        all.get(data);
        tensors.put(tensor.name().substring(tensor.name().lastIndexOf('.') + 1), data);
      }

      assertThat(all.hasRemaining()).isFalse();
      String key = StackDescription.KEY + layer.path();
      String json = FileMetadata.of(List.of(item), layout.optionName(), source).get(key);
      return new Written(tensors, writer.rounded(), StackDescription.parse(key, json));
    }
  }

  /** Digests that the vendor's functions gave for the same bytes. */
  @ParameterizedTest
  @CsvSource({
    "TRT_EDGE_LLM_SM110, 866a00e6f1fa5f8dbd1969981591a8f0cc3e5032603708e09e80c00f009f6c19, "
        + "94ed85ed46b566008e68c5a424224b6cd7c5009d11b1d3cd1437cef0d03d01b6",
    "TRT_EDGE_LLM_SM12X, d035488f83a37fe8bcaf34fe08421100387ac585c5eb919b660bdc2a34e57909, "
        + "a4b446698c85b0c78f0466d36534c823b116648f84b8ee9cbe957493cb39519d"})
  void gatedExpertsHaveTheVendorsBytes(ExpertLayout layout, String codes, String scales) throws Exception {
    Written written = write(ExpertFiles.of(true, 2, 256, 128), layout);

    assertThat(written.sha256("fc1_qweights")).isEqualTo(codes);
    assertThat(written.sha256("fc1_blocks_scale")).isEqualTo(scales);
    assertThat(written.sha256("fc2_qweights"))
        .isEqualTo("342a24aee996bbd20f139b972043cbfb97f6e0da158f91f5dbd30a8813c82fa7");
    assertThat(written.sha256("fc2_blocks_scale"))
        .isEqualTo("d4984dcb26f151b03fc59532fff87563fbc4aee02808d2d0a57bb3a4e6b44c7f");
    assertThat(written.rounded()).isEqualTo(RoundedScales.NONE);
  }

  /** The width is padded from 160 to 256, the atoms of H 192 to 256 rows. */
  @Test
  void paddedExpertsHaveTheVendorsBytes() throws Exception {
    Written written = write(ExpertFiles.of(false, 2, 192, 160), ExpertLayout.TRT_EDGE_LLM_SM110);

    assertThat(written.sha256("fc1_qweights"))
        .isEqualTo("094499202009f4919bd3472044d1002ab466790e4facd35716918fd69c90bc8a");
    assertThat(written.sha256("fc1_blocks_scale"))
        .isEqualTo("ebb0479efc61467d066efc85509e6b3e5c46cb835bdb82caa6a2b23917beddef");
    assertThat(written.sha256("fc2_qweights"))
        .isEqualTo("ce3a1519b0e9121e057da6b1bf297d6cb8a089e15fcd5192e9b0cbe49f507b12");
    assertThat(written.sha256("fc2_blocks_scale"))
        .isEqualTo("46d009ff2e9df7d7a89a9dbadb0f99d72d2a1f2268c6f495892e5054782bb0aa");
  }

  @Test
  void blackwellTilesHaveTheVendorsBytes() throws Exception {
    Written written = write(ExpertFiles.of(false, 1, 256, 192), ExpertLayout.BLACKWELL_MOE);

    assertThat(written.sha256("fc1_qweights"))
        .isEqualTo("8478ec5281ed79819f955cdfc161442c33de7897e8b98a5e22d829f1e8d42230");
    assertThat(written.sha256("fc1_block_scales"))
        .isEqualTo("6e8822b72cfa1c53d62147ecf01778710a77ad10949513111d2f4169d334e625");
    assertThat(written.sha256("fc2_qweights"))
        .isEqualTo("0a1d427560ece112969f7f6b2b02a6ddf69e68f7d7670d97832f1a1a9995ff34");
    assertThat(written.sha256("fc2_block_scales"))
        .isEqualTo("62258a4299d0c06d39419638c5d75327596580e8bf5661a6630174000f90e981");
  }

  @Test
  void marlinHasTheVendorsBytes() throws Exception {
    Written edge = write(ExpertFiles.of(false, 1, 256, 128), ExpertLayout.MARLIN_EDGE);
    assertThat(edge.sha256("fc1_qweights"))
        .isEqualTo("aea1d23aeaa378a27863de4e90ff306980b424748b7d3975f7e74f22ea42e132");
    assertThat(edge.sha256("fc1_block_scales"))
        .isEqualTo("6d97ff35f45ee58bba037d138cfd657b690b1592e7d18747decc853aab073780");

    Written vllm = write(ExpertFiles.of(false, 1, 256, 128), ExpertLayout.MARLIN_VLLM);
    assertThat(vllm.sha256("w13_weight")).isEqualTo(edge.sha256("fc1_qweights"));
    assertThat(vllm.sha256("w13_weight_scale"))
        .isEqualTo("7d8127f3f4ca45a691b20a231dbb535cc6bce4a9b7ad03bdb085c1806236edda");
    assertThat(little(vllm.tensors().get("w13_weight_scale_2")).getFloat()).isEqualTo(0.001f * 128);
  }

  private static ByteBuffer little(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Gate's scale is the smaller in expert 0, up's in expert 1. */
  @Test
  void differingGlobalScalesRoundTheSmallerSide() throws Exception {
    ExpertFiles files = ExpertFiles.of(true, 3, 128, 64)
        .global(0, "gate_proj", 0.003f).global(0, "up_proj", 0.01f)
        .global(1, "gate_proj", 0.02f).global(1, "up_proj", 0.005f);

    Written written = write(files, ExpertLayout.CUBLAS_128X4);

    ByteBuffer factors = little(written.tensors().get("w13_weight_scale_2"));
    assertThat(factors.getFloat(0)).isEqualTo(0.01f);
    assertThat(factors.getFloat(4)).isEqualTo(0.02f);
    assertThat(factors.getFloat(8)).isEqualTo(0.001f);
    long inexact = 0;
    long subnormal = 0;
    long flushed = 0;
    int atoms = 128 * 8;
    for (int e = 0; e < 2; e++) {
      float ratio = e == 0 ? 0.003f / 0.01f : 0.005f / 0.02f;
      byte[] small = files.get(e + (e == 0 ? ".gate_proj" : ".up_proj") + ".weight_scale").data();
      byte[] large = files.get(e + (e == 0 ? ".up_proj" : ".gate_proj") + ".weight_scale").data();
      for (int row = 0; row < 64; row++) {
        for (int col = 0; col < 8; col++) {
          int before = small[row * 8 + col];
          int after = E4M3.encode(E4M3.decode(before) * ratio);
          inexact += (double) E4M3.decode(after) * (e == 0 ? 0.01f : 0.02f)
              != (double) E4M3.decode(before) * (e == 0 ? 0.003f : 0.005f) ? 1 : 0;
          subnormal += after > 0 && after < 8 ? 1 : 0;
          flushed += after == 0 ? 1 : 0;
          // up first: rows 0 to 63, gate behind it
          byte[] all = written.tensors().get("w13_weight_scale");
          assertThat(all[e * atoms + atom(row + (e == 0 ? 64 : 0), col)]).isEqualTo((byte) after);
          assertThat(all[e * atoms + atom(row + (e == 0 ? 0 : 64), col)]).isEqualTo(large[row * 8 + col]);
        }
      }
    }

    assertThat(flushed).isPositive();
    assertThat(written.rounded()).isEqualTo(new RoundedScales(2, 2 * 64 * 8, inexact, subnormal, flushed, 0));
    assertThat(written.description().globals().get(0)).startsWith(GlobalScale.of(false, 0.01f).text());
  }

  private static int atom(int row, int col) {
    return col / 4 * 512 + row % 32 * 16 + row / 32 * 4 + col % 4;
  }

  @ParameterizedTest
  @CsvSource({"127, NaN", "-1, NaN", "-128, negative", "-70, negative"})
  void scalesThatNoRuntimeTakesAreRefused(byte scale, String what) {
    ExpertFiles files = ExpertFiles.of(true, 2, 128, 64);
    files.get("1.up_proj.weight_scale").data()[5 * 8 + 3] = scale;

    assertThatThrownBy(() -> write(files, ExpertLayout.TRTLLM_GEN))
        .isInstanceOf(BadSourceException.class)
        .hasMessageContaining(
            "Invalid block scale in " + ExpertFiles.PATH + ".1.up_proj.weight_scale: element [5, 3] is 0x")
        .hasMessageContaining("which is " + what + ", in file " + ExpertFiles.SHARD);
  }

  @ParameterizedTest
  @CsvSource({"NaN", "0", "-1", "Infinity", "1e-45"})
  void globalScalesThatAreNoneAreRefused(float scale) {
    ExpertFiles files = ExpertFiles.of(true, 2, 128, 64).global(1, "down_proj", scale);

    assertThatThrownBy(() -> write(files, ExpertLayout.CUBLAS_128X4))
        .isInstanceOf(BadSourceException.class)
        .hasMessageContaining("Invalid global scale of " + ExpertFiles.PATH + ".1.down_proj.weight_scale_2");
  }

  /** A subnormal float16 of 7e-10 is a third more, and so would be each of the expert's weights. */
  @ParameterizedTest
  @ValueSource(floats = {1e-11f, 7e-10f, 4.7e-7f, 600f})
  void aFactorThatFloat16CannotHoldIsRefused(float scale) {
    ExpertFiles files = ExpertFiles.of(true, 2, 128, 64).global(1, "down_proj", scale);

    assertThatThrownBy(() -> write(files, ExpertLayout.MARLIN_EDGE))
        .isInstanceOf(BadSourceException.class)
        .hasMessageContaining("Cannot write " + ExpertFiles.PATH + ".1.down_proj in layout marlin-edge");
  }

  @Test
  void factorsThatFloat16RoundsAreCounted() throws IOException {
    RoundedScales rounded = write(ExpertFiles.of(false, 2, 256, 128).global(1, "up_proj", 0x1p-10f)
        .global(1, "down_proj", 0x1p-21f), ExpertLayout.MARLIN_EDGE).rounded();

    assertThat(rounded).isEqualTo(new RoundedScales(0, 0, 0, 0, 0, 2));
    assertThat(ConvertSummary.kept(rounded)).isEqualTo("Every code and every block scale is kept. The layout has global"
        + " scales in float16: 2 are another value than before, by 2^-11 of it at most, and the files' metadata has them"
        + " as they were.");
    assertThat(write(ExpertFiles.of(false, 2, 256, 128), ExpertLayout.MARLIN_VLLM).rounded())
        .isEqualTo(RoundedScales.NONE);
  }
}
