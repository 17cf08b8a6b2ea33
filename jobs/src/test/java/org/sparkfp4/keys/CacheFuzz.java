package org.sparkfp4.keys;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.fuzz.Hostile;

/**
 * Any files as a cache's index and the header of its layer, and as the record of an export: the cache is read to its
 * pages and exported, or refused, and a run that is to write there finds what it may.
 */
class CacheFuzz {
  private static final Configuration CONF = new Configuration(false);
  private static final Pattern END = Pattern.compile("\"data_offsets\":\\[\\d+,(\\d{1,9})\\]");
  private static final int LARGEST_FILE = 1 << 16;

  private static final KeyPlan PLAN = KeyPlan.of("file:/keys",
      new KeyOptions(2, 0, 1e-6f, false, false, ScaleRule.CEIL, "m"), List.of(), List.of(), List.of(), "");

  private Path folder;
  private RawLocalFileSystem fs;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("cache-fuzz-");
    fs = new RawLocalFileSystem();
    fs.initialize(java.net.URI.create("file:///"), CONF);
  }

  @FuzzTest
  void cache(byte[] data) throws IOException {
    byte[][] files = Hostile.split(data, 3);
    Path cache = Files.createDirectories(folder.resolve("cache"));
    Path layer = cache.resolve("keys-00001-of-00001.safetensors");
    Files.write(cache.resolve(KeyFolder.INDEX), files[0]);
    writeLayer(layer, files[1]);
    int bytes = data.length + (int) Files.size(layer);

    // by the index, which must know how long the file is, and without it
    Hostile.read(bytes, () -> read(cache));
    Hostile.read(bytes, () -> read(layer));
    Hostile.read(bytes, () -> resume(cache));
    Hostile.read(bytes, () -> missing(files[2]));
  }

  private static void read(Path cache) throws IOException {
    for (CachedLayer layer : CachedKeys.layers(CONF, cache.toString())) {
      assertThat(layer.tokens()).isBetween(0L, layer.pages() * layer.page().tokens());
      layer.options();
      try (CachedKeys keys = new CachedKeys(layer, CONF)) {
        if (layer.pages() > 0) {
          keys.decode(layer.pages() * layer.page().tokens() - 1, new float[layer.page().dim()]);
        }
      }

      CacheChecksums.damage(layer, CONF);
    }
  }

  private void resume(Path cache) throws IOException {
    KeyFolder keys = new KeyFolder(fs, new org.apache.hadoop.fs.Path(cache.toString()));
    keys.requireOwn();
    keys.isComplete(PLAN);
    keys.finished(PLAN);
    keys.requireSame(PLAN);
  }

  private void missing(byte[] record) throws IOException {
    Path export = Files.createDirectories(folder.resolve("export"));
    Files.write(export.resolve("sparkfp4-export-id.json"), record);
    Files.write(export.resolve("there"), new byte[4]);
    org.apache.hadoop.fs.Path output = new org.apache.hadoop.fs.Path(export.toString());
    org.apache.hadoop.fs.Path absent = new org.apache.hadoop.fs.Path(output, "absent");
    Set<org.apache.hadoop.fs.Path> missing = new ExportRecord(fs, output, "id")
        .missing(List.of(new org.apache.hadoop.fs.Path(output, "there"), absent));

    assertThat(missing).as("files that are to be written").contains(absent);
  }

  /** A header, and as many bytes behind it as it says, within bounds. */
  private static void writeLayer(Path file, byte[] json) throws IOException {
    long end = 0;
    for (Matcher matcher = END.matcher(new String(json, StandardCharsets.ISO_8859_1)); matcher.find(); ) {
      end = Math.max(end, Long.parseLong(matcher.group(1)));
    }

    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.setLength(0);
      out.write(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(json.length).array());
      out.write(json);
      out.setLength(8 + json.length + Math.min(end, LARGEST_FILE));
    }
  }

  @AfterEach
  void removeFolder() {
    FileUtil.fullyDelete(folder.toFile());
  }
}
