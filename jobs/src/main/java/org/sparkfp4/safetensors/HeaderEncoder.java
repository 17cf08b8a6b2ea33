package org.sparkfp4.safetensors;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Writes headers: the same tensors and metadata give the same bytes. */
final class HeaderEncoder {
  private static final JsonFactory JSON = new JsonFactory();

  private HeaderEncoder() {}

  static byte[] encode(List<TensorInfo> tensors, Map<String, String> metadata, int alignment) {
    check(tensors);
    byte[] json = json(tensors, metadata);
    int padded = Math.addExact(json.length, Long.BYTES + alignment - 1) / alignment * alignment - Long.BYTES;
    if (padded > SafetensorsHeader.MAX_LENGTH) {
      throw new IllegalArgumentException(
          "Cannot encode a header of " + padded + " bytes for " + tensors.size() + " tensors: the format allows "
              + SafetensorsHeader.MAX_LENGTH);
    }

    ByteBuffer header = ByteBuffer.allocate(Long.BYTES + padded).order(ByteOrder.LITTLE_ENDIAN);
    header.putLong(padded).put(json);
    while (header.hasRemaining()) {
      header.put((byte) ' ');
    }

    return header.array();
  }

  private static void check(List<TensorInfo> tensors) {
    Set<String> names = new HashSet<>();
    long end = 0;
    for (TensorInfo tensor : tensors) {
      if (!names.add(tensor.name()) || tensor.name().equals(SafetensorsHeader.METADATA)) {
        throw new IllegalArgumentException("Cannot encode a header: tensor name " + tensor.name() + " is taken");
      }

      if (tensor.begin() != end) {
        throw new IllegalArgumentException(
            "Cannot encode a header: tensor " + tensor.name() + " begins at " + tensor.begin()
                + ", but the one before it ends at " + end);
      }

      if (tensor.length() != TensorSize.bytes(tensor.dtype(), tensor.shape())) {
        throw new IllegalArgumentException(
            "Cannot encode a header: tensor " + tensor.name() + " of " + tensor.dtype() + " " + tensor.shape()
                + " has a length of " + tensor.length());
      }

      end = tensor.end();
    }
  }

  private static byte[] json(List<TensorInfo> tensors, Map<String, String> metadata) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (JsonGenerator json = JSON.createGenerator(bytes)) {
      json.writeStartObject();
      if (!metadata.isEmpty()) {
        json.writeObjectFieldStart(SafetensorsHeader.METADATA);
        for (Map.Entry<String, String> entry : new TreeMap<>(metadata).entrySet()) {
          json.writeStringField(entry.getKey(), entry.getValue());
        }

        json.writeEndObject();
      }

      for (TensorInfo tensor : tensors) {
        json.writeObjectFieldStart(tensor.name());
        json.writeStringField("dtype", tensor.dtype().name());
        json.writeArrayFieldStart("shape");
        for (long dimension : tensor.shape()) {
          json.writeNumber(dimension);
        }

        json.writeEndArray();
        json.writeArrayFieldStart("data_offsets");
        json.writeNumber(tensor.begin());
        json.writeNumber(tensor.end());
        json.writeEndArray();
        json.writeEndObject();
      }

      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return bytes.toByteArray();
  }
}
