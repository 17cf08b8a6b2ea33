package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.RandomAccessFile;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticHeaders;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** A checkpoint of two terabytes and of many tensors, in sparse files. */
class LargeCheckpointTest {
  private static final long SHARD_BYTES = 5_000_000_000L;
  private static final ObjectMapper JSON = new ObjectMapper();

  @TempDir
  private Path folder;

  @Test
  void isPlannedFromHeadersAlone() throws IOException {
    SyntheticHeaders model = new SyntheticHeaders("deepseek_v32", new ModelShape(40, 336, 7168, 8192, 129280));
    Files.write(folder.resolve("config.json"), JSON.writeValueAsBytes(model.config()));
    int tensors = write(model);
    StringWriter out = new StringWriter();

    int status = Main.commandLine().setOut(new PrintWriter(out)).execute("inspect", folder.toString());

    assertThat(status).isZero();
    assertThat(tensors).isGreaterThan(70_000);
    assertThat(out.toString())
        .contains("tensors       " + tensors + ", ")
        .containsPattern("(?m)^routed experts +E4M3/F32/128x128 +NVFP4 +" + 3 * 336 * 37 + " +")
        .containsPattern("(?m)^attention +|(?m)^latent attention +E4M3/F32/128x128 +BF16 +latent attention +")
        .containsPattern("(?m)^quantized +9\\d\\.\\d % of the parameters");
  }

  private int write(SyntheticHeaders model) throws IOException {
    Map<String, List<TensorInfo>> shards = new LinkedHashMap<>();
    ObjectNode index = JSON.createObjectNode();
    ObjectNode weightMap = index.putObject("weight_map");
    List<TensorInfo> open = new ArrayList<>();
    long end = SHARD_BYTES;
    String file = null;
    int count = 0;
    for (SyntheticHeaders.Header tensor : model.tensors()) {
      long length = tensor.dtype().bytes(tensor.shape().stream().reduce(1L, (a, b) -> a * b));
      if (end + length > SHARD_BYTES) {
        file = "model-%05d.safetensors".formatted(shards.size() + 1);
        open = new ArrayList<>();
        shards.put(file, open);
        end = 0;
      }

      open.add(new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), end, end + length));
      end += length;
      weightMap.put(tensor.name(), file);
      count++;
    }

    for (Map.Entry<String, List<TensorInfo>> shard : shards.entrySet()) {
      try (RandomAccessFile out = new RandomAccessFile(folder.resolve(shard.getKey()).toFile(), "rw")) {
        byte[] header = SafetensorsHeader.encode(shard.getValue(), SafetensorsHeader.FORMAT_PT);
        out.write(header);
        out.setLength(header.length + shard.getValue().get(shard.getValue().size() - 1).end());
      }
    }

    Files.write(folder.resolve("model.safetensors.index.json"), JSON.writeValueAsBytes((JsonNode) index));
    return count;
  }
}
