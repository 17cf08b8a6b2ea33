package org.sparkfp4;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** Small checkpoints read whole and written again, for tests that change something in between. */
public final class CheckpointFiles {
  private static final ObjectMapper JSON = new ObjectMapper();

  private CheckpointFiles() {}

  /** A folder or file below the golden vectors. */
  public static Path golden(String name) {
    try {
      return Path.of(CheckpointFiles.class.getResource("/golden/" + name).toURI());
    } catch (URISyntaxException e) {
      throw new IllegalArgumentException(name, e);
    }
  }

  /** All tensors of a checkpoint's folder, or of one file. */
  public static Map<String, StoredTensor> read(Path checkpoint) throws IOException {
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    Path folder = Files.isDirectory(checkpoint) ? checkpoint : checkpoint.getParent();
    for (LocatedTensor tensor : Checkpoint.open(new Configuration(), checkpoint.toString()).tensors()) {
      byte[] data = new byte[Math.toIntExact(tensor.length())];
      try (RandomAccessFile file = new RandomAccessFile(folder.resolve(tensor.file()).toFile(), "r")) {
        file.seek(tensor.offset());
        file.readFully(data);
      }

      tensors.put(tensor.name(), new StoredTensor(tensor.dtype(), tensor.shape(), data));
    }

    return tensors;
  }

  /** Writes one safetensors file. */
  public static void write(Path file, Map<String, StoredTensor> tensors) throws IOException {
    List<TensorInfo> infos = new ArrayList<>();
    long end = 0;
    for (Map.Entry<String, StoredTensor> entry : tensors.entrySet()) {
      StoredTensor tensor = entry.getValue();
      infos.add(new TensorInfo(entry.getKey(), tensor.dtype(), tensor.shape(), end, end + tensor.data().length));
      end += tensor.data().length;
    }

    try (OutputStream out = Files.newOutputStream(file)) {
      out.write(SafetensorsHeader.encode(infos, SafetensorsHeader.FORMAT_PT));
      for (StoredTensor tensor : tensors.values()) {
        out.write(tensor.data());
      }
    }
  }

  /** Writes the index of a checkpoint whose only shard is {@code shard}. */
  public static void writeIndex(Path folder, String shard, Map<String, StoredTensor> tensors) throws IOException {
    ObjectNode index = JSON.createObjectNode();
    index.putObject("metadata").put("total_size", tensors.values().stream().mapToLong(t -> t.data().length).sum());
    ObjectNode weightMap = index.putObject("weight_map");
    tensors.keySet().forEach(name -> weightMap.put(name, shard));
    Files.write(folder.resolve("model.safetensors.index.json"), JSON.writeValueAsBytes(index));
  }
}
