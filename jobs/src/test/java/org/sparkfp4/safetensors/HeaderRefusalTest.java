package org.sparkfp4.safetensors;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HeaderRefusalTest {
  private static final String TENSOR = "{'a':{'dtype':'BF16','shape':[2,3],'data_offsets':[0,12]}";

  // header with ' for ", data bytes, message
  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
    "[]                                                          | 0  | does not begin with '{'",
    "`  {}`                                                      | 0  | does not begin with '{'",
    "{'a':[1]}                                                   | 0  | tensor a is an array, not an object",
    "{'a':null}                                                  | 0  | tensor a is null, not an object",
    "{'__metadata__':'pt'}                                       | 0  | __metadata__ is a string, not an object",
    "{'__metadata__':{'n':1}} | 0 | __metadata__ entry n is an integer, not a string",
    "{'__metadata__':{'n':null}}                                 | 0  | __metadata__ entry n is null, not a string",
    "{'__metadata__':{'n':'1','n':'2'}}                          | 0  | __metadata__ entry n occurs twice",
    "{'__metadata__':{},'__metadata__':{}}                       | 0  | tensor name __metadata__ occurs twice",
    "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]},'a':{'dtype':'U8','shape':[1],'data_offsets':[1,2]}} | 2 "
        + "| tensor name a occurs twice in the header",
    "{'a':{'dtype':'U8','dtype':'I8','shape':[1],'data_offsets':[0,1]}} | 1 | tensor a: field dtype occurs twice",
    "{'a':{'dtype':'U8','shape':[1],'shape':[1],'data_offsets':[0,1]}}  | 1 | tensor a: field shape occurs twice",
    "{'a':{'shape':[1],'data_offsets':[0,1]}}                    | 1  | tensor a has no dtype",
    "{'a':{'dtype':'U8','data_offsets':[0,1]}}                   | 1  | tensor a has no shape",
    "{'a':{'dtype':'U8','shape':[1]}}                            | 1  | tensor a has no data_offsets",
    "{'a':{'dtype':'BF17','shape':[1],'data_offsets':[0,2]}}     | 2  | tensor a: unknown dtype BF17",
    "{'a':{'dtype':'bf16','shape':[1],'data_offsets':[0,2]}}     | 2  | tensor a: unknown dtype bf16",
    "{'a':{'dtype':7,'shape':[1],'data_offsets':[0,2]}}          | 2  | tensor a: dtype is an integer, not a string",
    "{'a':{'dtype':'U8','shape':[-1],'data_offsets':[0,1]}}      | 1  | tensor a: shape has -1, which is negative",
    "{'a':{'dtype':'U8','shape':[1.0],'data_offsets':[0,1]}}     | 1  | an element of shape is a fraction",
    "{'a':{'dtype':'U8','shape':['1'],'data_offsets':[0,1]}}     | 1  | an element of shape is a string",
    "{'a':{'dtype':'U8','shape':[[1]],'data_offsets':[0,1]}}     | 1  | an element of shape is an array",
    "{'a':{'dtype':'U8','shape':1,'data_offsets':[0,1]}}         | 1  | tensor a: shape is an integer, not an array",
    "{'a':{'dtype':'U8','shape':[9223372036854775808],'data_offsets':[0,1]}} | 1 "
        + "| tensor a: shape has 9223372036854775808, which overflows 63 bits",
    "{'a':{'dtype':'U8','shape':[4294967296,4294967296],'data_offsets':[0,0]}} | 0 "
        + "| tensor a: size of U8 [4294967296, 4294967296]: long overflow",
    "{'a':{'dtype':'F64','shape':[2305843009213693952],'data_offsets':[0,0]}}  | 0 | long overflow",
    "{'a':{'dtype':'F4','shape':[3],'data_offsets':[0,1]}}       | 1  | 3 elements of F4 are no whole number of bytes",
    "{'a':{'dtype':'BF16','shape':[2,3],'data_offsets':[0,11]}}  | 11 "
        + "| tensor a: BF16 [2, 3] takes 12 bytes, but data_offsets [0, 11] hold 11",
    "{'a':{'dtype':'U8','shape':[1],'data_offsets':[1,0]}}       | 1  | data_offsets [1, 0] are no [begin, end]",
    "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0]}}         | 1  | data_offsets [0] are no [begin, end]",
    "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1,2]}}     | 1  | data_offsets [0, 1, 2] are no [begin, end]",
    "{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},'b':{'dtype':'U8','shape':[4],'data_offsets':[2,6]}} | 6 "
        + "| tensor b begins at 2 and overlaps the tensor before it, which ends at 4",
    "{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},'b':{'dtype':'U8','shape':[4],'data_offsets':[5,9]}} | 9 "
        + "| tensor b begins at 5 and leaves a gap",
    "{'a':{'dtype':'U8','shape':[4],'data_offsets':[4,8]}}       | 8  | tensor a begins at 4 and leaves a gap",
    "{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},'b':{'dtype':'U8','shape':[0],'data_offsets':[2,2]}} | 4 "
        + "| tensor b begins at 2 and overlaps",
  })
  void badEntry(String header, int dataBytes, String message) {
    refuses(file(header.replace('\'', '"'), dataBytes), message);
  }

  @Test
  void nameThatIsNoText() {
    refuses(
        file("{\"a\\ud800\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1),
        "has half of a surrogate pair, which UTF-8 cannot hold");
  }

  @Test
  void damagedJson() {
    String tensor = TENSOR.replace('\'', '"');
    refuses(file(tensor, 12), "its header is no JSON");
    refuses(file(tensor + "}}", 12), "its header is no JSON");
    refuses(file(tensor + "} x", 12), "its header is no JSON");
    refuses(file(tensor + "} {}", 12), "its header goes on after the JSON object");
    refuses(file(tensor.replace('a', '\u00e9'), 12, StandardCharsets.ISO_8859_1), "its header is no UTF-8");
    refuses(file(tensor + "}", 12, StandardCharsets.UTF_16LE), "its header is no JSON");
    refuses(file("", 0), "does not begin with '{'");
  }

  @Test
  void fileOfAnotherLength() {
    String header = TENSOR.replace('\'', '"') + "}";
    refuses(file(header, 11), "tensor a ends at 12, past the 11 data bytes of the file; the file is shorter");
    refuses(file(header, 13), "its tensors end at 12, but it has 13 data bytes; the file is longer");
    refuses(file("{}", 1), "its tensors end at 0, but it has 1 data bytes");
    refuses(new byte[0], "it has 0 bytes, fewer than the 8");
    refuses(new byte[7], "it has 7 bytes, fewer than the 8");
  }

  @Test
  void headerLength() {
    refuses(withLength(20_000, new byte[20]), "header length 20000 goes beyond the file, which has 28 bytes");
    refuses(withLength(21, new byte[20]), "header length 21 goes beyond the file, which has 28 bytes");
    refuses(withLength(100_000_001, new byte[0]), "header length 100000001 is over the format's limit of 100000000");
    refuses(withLength(-1, new byte[0]), "header length 18446744073709551615 is over the format's limit");
    refuses(withLength(Long.MIN_VALUE, new byte[0]), "header length 9223372036854775808 is over the format's limit");
  }

  @Test
  void fileThatShrankSinceItWasListed() {
    byte[] file = file(TENSOR.replace('\'', '"') + "}", 12);
    assertThatThrownBy(() -> SafetensorsHeader.parse("f", new ByteArrayInputStream(file, 0, 20), file.length))
        .isInstanceOf(InvalidSafetensorsException.class)
        .hasMessage("Invalid safetensors file f: it ends within its header; it is shorter than its listed length");
  }

  private static void refuses(byte[] file, String message) {
    assertThatThrownBy(() -> SafetensorsHeader.parse("m.safetensors", new ByteArrayInputStream(file), file.length))
        .isInstanceOf(InvalidSafetensorsException.class)
        .hasMessageStartingWith("Invalid safetensors file m.safetensors: ")
        .hasMessageContaining(message);
  }

  private static byte[] file(String header, int dataBytes) {
    return file(header, dataBytes, StandardCharsets.UTF_8);
  }

  private static byte[] file(String header, int dataBytes, Charset charset) {
    byte[] json = header.getBytes(charset);
    byte[] rest = new byte[json.length + dataBytes];
    System.arraycopy(json, 0, rest, 0, json.length);
    return withLength(json.length, rest);
  }

  private static byte[] withLength(long length, byte[] rest) {
    return ByteBuffer.allocate(Long.BYTES + rest.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(length)
        .put(rest)
        .array();
  }
}
