package org.sparkfp4.safetensors;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CharsetEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Turns the JSON of a header into tensors; refuses whatever the format does not allow. */
final class HeaderParser {
  // tensor names are all different: a symbol table of them only costs
  private static final JsonFactory JSON = JsonFactory.builder()
      .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
      .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
      .build();

  private final String file;
  private final long fileLength;

  HeaderParser(String file, long fileLength) {
    this.file = file;
    this.fileLength = fileLength;
  }

  SafetensorsHeader parse(byte[] header) throws InvalidSafetensorsException {
    if (header.length == 0 || header[0] != '{') {
      throw invalid("its header does not begin with '{'; the file is damaged or of another format");
    }

    // A reader, since Jackson would guess UTF-16 or UTF-32 from bytes; a new decoder reports malformed input.
    InputStreamReader characters =
        new InputStreamReader(new ByteArrayInputStream(header), StandardCharsets.UTF_8.newDecoder());
    try (JsonParser json = JSON.createParser(characters)) {
      return parse(json, Long.BYTES + (long) header.length);
    } catch (InvalidSafetensorsException e) {
      throw e;
    } catch (JsonProcessingException e) {
      throw new InvalidSafetensorsException(file, "its header is no JSON: " + e.getOriginalMessage(), e);
    } catch (CharacterCodingException e) {
      throw new InvalidSafetensorsException(file, "its header is no UTF-8", e);
    } catch (IOException e) {
      throw new InvalidSafetensorsException(file, "its header cannot be parsed: " + e.getMessage(), e);
    }
  }

  private SafetensorsHeader parse(JsonParser json, long dataStart) throws IOException {
    List<TensorInfo> tensors = new ArrayList<>();
    Map<String, String> metadata = null;
    Set<String> names = new HashSet<>();
    CharsetEncoder utf8 = StandardCharsets.UTF_8.newEncoder();
    expect(json.nextToken(), JsonToken.START_OBJECT, "its header");
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String name = json.currentName();
      if (!utf8.canEncode(name)) {
        throw invalid("tensor name " + name + " has half of a surrogate pair, which UTF-8 cannot hold");
      }

      if (!names.add(name)) {
        throw invalid("tensor name " + name + " occurs twice in the header");
      }

      json.nextToken();
      if (name.equals(SafetensorsHeader.METADATA)) {
        metadata = metadata(json);
      } else {
        tensors.add(tensor(json, name));
      }
    }

    if (json.nextToken() != null) {
      throw invalid("its header goes on after the JSON object");
    }

    long dataBytes = fileLength - dataStart;
    return new SafetensorsHeader(
        inOrder(tensors, dataBytes), metadata == null ? Map.of() : metadata, dataStart, dataBytes);
  }

  private Map<String, String> metadata(JsonParser json) throws IOException {
    expect(json.currentToken(), JsonToken.START_OBJECT, SafetensorsHeader.METADATA);
    Map<String, String> metadata = new LinkedHashMap<>();
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String key = json.currentName();
      if (json.nextToken() != JsonToken.VALUE_STRING) {
        throw invalid(
            SafetensorsHeader.METADATA + " entry " + key + " is " + describe(json.currentToken()) + ", not a string");
      }

      if (metadata.put(key, json.getText()) != null) {
        throw invalid(SafetensorsHeader.METADATA + " entry " + key + " occurs twice");
      }
    }

    return metadata;
  }

  private TensorInfo tensor(JsonParser json, String name) throws IOException {
    expect(json.currentToken(), JsonToken.START_OBJECT, "tensor " + name);
    DType dtype = null;
    List<Long> shape = null;
    List<Long> offsets = null;
    Set<String> fields = new HashSet<>();
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String field = json.currentName();
      if (!fields.add(field)) {
        throw invalid("tensor " + name + ": field " + field + " occurs twice");
      }

      json.nextToken();
      switch (field) {
        case "dtype" -> dtype = dtype(json, name);
        case "shape" -> shape = numbers(json, name, field);
        case "data_offsets" -> offsets = numbers(json, name, field);
        default -> json.skipChildren();
      }
    }

    if (dtype == null || shape == null || offsets == null) {
      String missing = dtype == null ? "dtype" : shape == null ? "shape" : "data_offsets";
      throw invalid("tensor " + name + " has no " + missing);
    }

    if (offsets.size() != 2 || offsets.get(1) < offsets.get(0)) {
      throw invalid("tensor " + name + ": data_offsets " + offsets + " are no [begin, end]");
    }

    TensorInfo tensor = new TensorInfo(name, dtype, shape, offsets.get(0), offsets.get(1));
    checkSize(tensor);
    return tensor;
  }

  private DType dtype(JsonParser json, String tensor) throws IOException {
    expect(json.currentToken(), JsonToken.VALUE_STRING, "tensor " + tensor + ": dtype");
    DType dtype = DType.named(json.getText());
    if (dtype == null) {
      throw invalid("tensor " + tensor + ": unknown dtype " + json.getText());
    }

    return dtype;
  }

  private List<Long> numbers(JsonParser json, String tensor, String field) throws IOException {
    expect(json.currentToken(), JsonToken.START_ARRAY, "tensor " + tensor + ": " + field);
    List<Long> numbers = new ArrayList<>();
    while (json.nextToken() != JsonToken.END_ARRAY) {
      expect(json.currentToken(), JsonToken.VALUE_NUMBER_INT, "tensor " + tensor + ": an element of " + field);
      if (json.getNumberType() == JsonParser.NumberType.BIG_INTEGER) {
        throw invalid("tensor " + tensor + ": " + field + " has " + json.getText() + ", which overflows 63 bits");
      }

      if (json.getLongValue() < 0) {
        throw invalid("tensor " + tensor + ": " + field + " has " + json.getText() + ", which is negative");
      }

      numbers.add(json.getLongValue());
    }

    return numbers;
  }

  private void checkSize(TensorInfo tensor) throws InvalidSafetensorsException {
    long bytes;
    try {
      bytes = TensorSize.bytes(tensor.dtype(), tensor.shape());
    } catch (ArithmeticException e) {
      throw new InvalidSafetensorsException(
          file,
          "tensor " + tensor.name() + ": size of " + tensor.dtype() + " " + tensor.shape() + ": " + e.getMessage(),
          e);
    }

    if (bytes != tensor.length()) {
      throw invalid(
          "tensor " + tensor.name() + ": " + tensor.dtype() + " " + tensor.shape() + " takes " + bytes
              + " bytes, but data_offsets [" + tensor.begin() + ", " + tensor.end() + "] hold " + tensor.length());
    }
  }

  /** The tensors in the order of their bytes, which must fill the data section exactly. */
  private List<TensorInfo> inOrder(List<TensorInfo> tensors, long dataBytes) throws InvalidSafetensorsException {
    List<TensorInfo> sorted = new ArrayList<>(tensors);
    sorted.sort(TensorInfo.BY_PLACE);
    long end = 0;
    for (TensorInfo tensor : sorted) {
      if (tensor.begin() < end) {
        throw invalid("tensor " + tensor.name() + " begins at " + tensor.begin()
            + " and overlaps the tensor before it, which ends at " + end);
      }

      if (tensor.end() > dataBytes) {
        throw invalid("tensor " + tensor.name() + " ends at " + tensor.end() + ", past the " + dataBytes
            + " data bytes of the file; the file is shorter than its header says, download it again");
      }

      if (tensor.begin() > end) {
        throw invalid("tensor " + tensor.name() + " begins at " + tensor.begin() + " and leaves a gap behind the bytes"
            + " before it, which end at " + end);
      }

      end = tensor.end();
    }

    if (end < dataBytes) {
      throw invalid("its tensors end at " + end + ", but it has " + dataBytes
          + " data bytes; the file is longer than its header says");
    }

    return sorted;
  }

  private void expect(JsonToken actual, JsonToken expected, String what) throws InvalidSafetensorsException {
    if (actual != expected) {
      throw invalid(what + " is " + describe(actual) + ", not " + describe(expected));
    }
  }

  private static String describe(JsonToken token) {
    if (token == null) {
      return "missing";
    }

    return switch (token) {
      case START_OBJECT, END_OBJECT -> "an object";
      case START_ARRAY, END_ARRAY -> "an array";
      case VALUE_STRING -> "a string";
      case VALUE_NUMBER_INT -> "an integer";
      case VALUE_NUMBER_FLOAT -> "a fraction";
      case VALUE_TRUE, VALUE_FALSE -> "a boolean";
      case VALUE_NULL -> "null";
      default -> token.name();
    };
  }

  private InvalidSafetensorsException invalid(String problem) {
    return new InvalidSafetensorsException(file, problem);
  }
}
