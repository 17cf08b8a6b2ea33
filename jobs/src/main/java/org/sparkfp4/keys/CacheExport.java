package org.sparkfp4.keys;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * Writes a cache of one request, whose token t is in slot t, as files that a runtime looks for. Experimental: neither
 * format is documented for indexer caches, and a runtime takes them only where its pages are the cache's.
 *
 * <p>An export that ended early is finished by another of the same cache and tokens, see {@link ExportRecord}.
 */
public final class CacheExport {
  private static final int ID_DIGITS = 16;

  private final Configuration conf;
  private final List<CachedLayer> layers;
  private final long[] tokens;
  private final Path output;

  /**
   * Prepares an export.
   *
   * @param tokens ids of the request's tokens
   * @param output folder of the files
   * @throws InvalidKeysException if a token's id is not one of 31 bits, a layer has fewer tokens or has them in other
   *     slots, or layers differ in their pages
   */
  public CacheExport(Configuration conf, List<CachedLayer> layers, long[] tokens, Path output) {
    this.conf = conf;
    this.layers = List.copyOf(layers);
    this.tokens = tokens.clone();
    this.output = output;
    requireTokenIds(tokens);
    requireDistinct(layers);
    for (CachedLayer layer : layers) {
      if (!layer.page().equals(layers.get(0).page())) {
        throw new InvalidKeysException("Invalid cache: pages of " + layer.name() + " are " + layer.page() + ", those "
            + "of " + layers.get(0).name() + " are " + layers.get(0).page());
      }

      if (!CacheMetadata.BY_TOKEN.equals(layer.metadata().get(CacheMetadata.SLOT_ORDER))) {
        throw new InvalidKeysException("Invalid cache: the tokens of " + layer.name() + " in " + layer.file()
            + " are not in the slots of their numbers, as those of one request's pages are; make the cache without a "
            + "slot mapping, or with slots 0, 1, 2, ...");
      }

      long filled = tokens.length / layer.page().tokens();
      if (layer.pages() < filled) {
        throw new InvalidKeysException("Invalid cache: " + layer.name() + " has " + layer.pages() + " pages, "
            + tokens.length + " tokens fill " + filled);
      }

      long there = layer.tokens();
      if (there < tokens.length) {
        throw new InvalidKeysException("Invalid tokens: " + tokens.length + ", " + layer.name() + " in " + layer.file()
            + " has keys of " + there);
      }
    }
  }

  /** Files of an export are called by their layers, and a page has that of each layer once. */
  private static void requireDistinct(List<CachedLayer> layers) {
    Map<String, CachedLayer> byName = new HashMap<>();
    for (CachedLayer layer : layers) {
      CachedLayer other = byName.put(layer.name(), layer);
      if (other != null) {
        throw new InvalidKeysException("Invalid cache: it has layer " + layer.name() + " twice, in " + other.file()
            + " and " + layer.file() + "; make the cache anew");
      }
    }
  }

  /** SGLang hashes ids of 32 bits; a longer one, cut to them, would name the pages of other tokens. */
  private static void requireTokenIds(long[] tokens) {
    for (int i = 0; i < tokens.length; i++) {
      if (tokens[i] < 0 || tokens[i] > Integer.MAX_VALUE) {
        throw new InvalidKeysException("Invalid tokens: the id of token " + i + " is " + tokens[i]
            + ", must be from 0 to " + Integer.MAX_VALUE + "; give the ids that the runtime's tokenizer makes");
      }
    }
  }

  /**
   * SGLang's HiCache: a raw file for each full page, {@code <hash>.indexer_<model>.bin}, with that page of every layer
   * in order.
   *
   * @param model the name that the runtime serves the model under
   * @return files of the export
   */
  public int sglang(String model) throws IOException {
    List<String> hashes = TokenHashes.pages(tokens, layers.get(0).page().tokens());
    FileSystem fs = RawFileSystem.of(output, conf);
    List<Path> files = hashes.stream()
        .map(hash -> ChildPath.of(output, hash + ".indexer_" + model.replace('/', '-') + ".bin"))
        .toList();
    write(fs, "sglang", files, (page, out) -> {
      for (CachedLayer layer : layers) {
        try (CachedKeys keys = new CachedKeys(layer, conf)) {
          out.write(keys.page(page).array());
        }
      }
    });
    return hashes.size();
  }

  /** Writes the bytes of a file. */
  @FunctionalInterface
  private interface FileContent {
    void write(int file, OutputStream out) throws IOException;
  }

  /** Writes those of the files that an export that ended early did not, and at last the record that all are there. */
  private void write(FileSystem fs, String format, List<Path> files, FileContent content) throws IOException {
    ExportRecord record = new ExportRecord(fs, output, id(format, files));
    Set<Path> missing = record.missing(files);
    if (missing.isEmpty() && record.isFinished()) {
      return;
    }

    if (!record.isOwn()) {
      requireNone(fs, files, record);
      record.begin();
    }

    for (int i = 0; i < files.size(); i++) {
      int file = i;
      if (missing.contains(files.get(i))) {
        AtomicFile.write(fs, files.get(i), out -> content.write(file, out));
      }
    }

    record.finish(format, layerNames(), files);
  }

  /** Names of the files, which tell of tokens and model, and what is in the cache. */
  private String id(String format, List<Path> files) {
    StringBuilder all = new StringBuilder(format).append('\n').append(Arrays.toString(tokens)).append('\n');
    files.forEach(file -> all.append(file.getName()).append('\n'));
    layers.forEach(layer -> all.append(layer.name()).append(' ').append(new TreeMap<>(layer.metadata())).append('\n'));
    return Sha256.hex(all.toString()).substring(0, ID_DIGITS);
  }

  /** Refuses to replace what is there, before anything is written. */
  private void requireNone(FileSystem fs, List<Path> files, ExportRecord record) throws IOException {
    for (Path file : files) {
      if (fs.exists(file)) {
        String owner = record.others(file).stream().findFirst()
            .map(other -> ", of " + other + ", and this export is of " + layerNames()
                + ": requests that begin with the same tokens share it")
            .orElse("");
        throw new IOException(
            "Cannot write to " + file + ": it is there already" + owner + "; remove it, or choose another folder");
      }
    }
  }

  private String layerNames() {
    String first = "layer " + layers.get(0).name();
    return layers.size() == 1
        ? first
        : first + " to " + layers.get(layers.size() - 1).name() + " (" + layers.size() + " layers)";
  }

  private static String fileName(CachedLayer layer, String ending) {
    String name = layer.name() + ending;
    if (layer.name().isEmpty() || name.contains("/") || name.startsWith(".")) {
      throw new InvalidKeysException("Invalid name of a layer's file: '" + name + "' of the layer '" + layer.name()
          + "', must be a name in the output's own folder; see --layer-ending");
    }

    return name + ".safetensors";
  }

  /**
   * vLLM's ExampleConnector: {@code <hash of the tokens>/<layer>.safetensors} with the tensor {@code kv_cache} U8 [n,
   * 1, D / 2 + D / 32], whose rows of a page are that page's image.
   *
   * @param ending what the runtime calls a layer's cache behind the layer's name
   * @return files of the export
   */
  public int vllm(String ending) throws IOException {
    int pageTokens = layers.get(0).page().tokens();
    int whole = Math.max(0, tokens.length - 1) / pageTokens * pageTokens;
    Path folder = new Path(output, TokenHashes.prefix(tokens, whole));
    FileSystem fs = RawFileSystem.of(output, conf);
    List<Path> files = layers.stream().map(layer -> ChildPath.of(folder, fileName(layer, ending))).toList();
    write(fs, "vllm", files, (file, out) -> {
      CachedLayer layer = layers.get(file);
      long bytes = (long) whole * layer.page().tokenBytes();
      TensorInfo info = new TensorInfo(
          "kv_cache", DType.U8, List.of((long) whole, 1L, (long) layer.page().tokenBytes()), 0, bytes);
      try (CachedKeys keys = new CachedKeys(layer, conf)) {
        out.write(SafetensorsHeader.encode(List.of(info), SafetensorsHeader.FORMAT_PT));
        for (int page = 0; page < whole / pageTokens; page++) {
          ByteBuffer image = keys.page(page);
          out.write(image.array(), 0, image.remaining());
        }
      }
    });
    return layers.size();
  }
}
