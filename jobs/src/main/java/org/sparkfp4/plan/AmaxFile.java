package org.sparkfp4.plan;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Utf8Json;

/**
 * {@code amax.json}: the largest magnitude of each cut unit, found by a job before the main one; exact to the bit. It is
 * null, read as NaN, of a unit with a weight that is NaN or infinite.
 */
public final class AmaxFile {
  private static final JsonFactory JSON =
      JsonFactory.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).build();

  private AmaxFile() {}

  /** Reads the amax of units, by unit number. */
  public static Map<Integer, Float> read(Configuration configuration, Path path) throws IOException {
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    try (InputStream in = fileSystem.open(path); JsonParser json = JSON.createParser(Utf8Json.reader(in))) {
      if (json.nextToken() != JsonToken.START_OBJECT) {
        throw new IOException("Invalid amax file " + path + ": it is no JSON object");
      }

      Map<Integer, Float> amax = new TreeMap<>();
      while (json.nextToken() != JsonToken.END_OBJECT) {
        String unit = json.currentName();
        JsonToken value = json.nextToken();
        if (!value.isNumeric() && value != JsonToken.VALUE_NULL) {
          throw new IOException("Invalid amax file " + path + ": amax of unit " + unit + " is " + json.getText());
        }

        // from the text: a double between would round twice
        amax.put(Integer.valueOf(unit), value.isNumeric() ? Float.parseFloat(json.getText()) : Float.NaN);
      }

      return amax;
    } catch (JsonProcessingException e) {
      throw new IOException("Invalid amax file " + path + ": " + e.getOriginalMessage(), e);
    } catch (NumberFormatException e) {
      throw new IOException("Invalid amax file " + path + ": a key is no unit number: " + e.getMessage(), e);
    }
  }

  /**
   * Writes the amax of units.
   *
   * @throws IllegalArgumentException when one is negative
   */
  public static void write(Configuration configuration, Path path, Map<Integer, Float> amax) throws IOException {
    for (Map.Entry<Integer, Float> entry : amax.entrySet()) {
      if (entry.getValue() < 0) {
        throw new IllegalArgumentException(
            "Cannot write amax file " + path + ": amax of unit " + entry.getKey() + " is " + entry.getValue());
      }
    }

    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    try (JsonGenerator json = JSON.createGenerator((OutputStream) fileSystem.create(path, true))) {
      json.writeStartObject();
      for (Map.Entry<Integer, Float> entry : new TreeMap<>(amax).entrySet()) {
        json.writeFieldName(entry.getKey().toString());
        if (Float.isFinite(entry.getValue())) {
          json.writeNumber(entry.getValue());
        } else {
          json.writeNull();
        }
      }

      json.writeEndObject();
    }
  }
}
