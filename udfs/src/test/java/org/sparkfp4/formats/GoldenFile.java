package org.sparkfp4.formats;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** A small safetensors file among the test resources, held in memory: vectors from the reference producers. */
public final class GoldenFile {
  /** One tensor; {@code data} is little-endian and a fresh view at each call of {@link GoldenFile#tensor}. */
  public record Tensor(String dtype, long[] shape, ByteBuffer data) {
    public byte[] bytes() {
      byte[] bytes = new byte[data.remaining()];
      data.get(data.position(), bytes);
      return bytes;
    }

    public float scalar() {
      if (!dtype.equals("F32") || data.remaining() != Float.BYTES) {
        throw new IllegalStateException("Cannot read as a scalar: " + dtype + " of " + data.remaining() + " bytes");
      }

      return data.getFloat(data.position());
    }
  }

  private final Map<String, Tensor> tensors = new TreeMap<>();

  private GoldenFile() {}

  /** Opens {@code golden/<name>.safetensors}. */
  public static GoldenFile open(String name) {
    String resource = "/golden/" + name + ".safetensors";
    try (InputStream in = GoldenFile.class.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IllegalStateException("Cannot find the test resource " + resource);
      }

      return parse(ByteBuffer.wrap(in.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The tensors' names, sorted. */
  public Iterable<String> names() {
    return tensors.keySet();
  }

  public boolean has(String name) {
    return tensors.containsKey(name);
  }

  public Tensor tensor(String name) {
    Tensor tensor = tensors.get(name);
    if (tensor == null) {
      throw new IllegalStateException("Cannot find " + name + " among " + tensors.keySet());
    }

    return new Tensor(tensor.dtype, tensor.shape, tensor.data.duplicate().order(ByteOrder.LITTLE_ENDIAN));
  }

  private static GoldenFile parse(ByteBuffer file) throws IOException {
    int headerLength = (int) file.getLong(0);
    String header = new String(file.array(), Long.BYTES, headerLength, StandardCharsets.UTF_8);
    int dataStart = Long.BYTES + headerLength;
    GoldenFile golden = new GoldenFile();
    for (Map.Entry<String, JsonNode> entry : new ObjectMapper().readTree(header).properties()) {
      if (entry.getKey().equals("__metadata__")) {
        continue;
      }

      JsonNode node = entry.getValue();
      JsonNode offsets = node.get("data_offsets");
      int start = dataStart + offsets.get(0).intValue();
      int length = offsets.get(1).intValue() - offsets.get(0).intValue();
      Stream<JsonNode> sides = StreamSupport.stream(node.get("shape").spliterator(), false);
      long[] shape = sides.mapToLong(JsonNode::longValue).toArray();
      golden.tensors.put(entry.getKey(), new Tensor(node.get("dtype").textValue(), shape, file.slice(start, length)));
    }

    return golden;
  }
}
