package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.regex.Pattern;
import org.apache.arrow.memory.util.MemoryUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The loader, each time in a class loader of its own: a library belongs to the one that loaded it. */
class NativeLibraryTest {
  private static final String LIBRARY = System.getProperty("os.arch") + "/Linux/libsparkfp4.so";

  private final String arch = System.getProperty("os.arch");

  @TempDir
  private Path folder;

  @AfterEach
  void restoreProperties() {
    System.clearProperty(NativeLibrary.PATH_KEY);
    System.setProperty("os.arch", arch);
  }

  @Test
  void resourceIsUnpackedLoadedAndDeleted() throws Exception {
    assumeLibrary();
    long before = unpackedFiles();

    assertThat(tier("auto")).isIn("scalar", "avx2", "avx512");
    assertThat(tier("scalar")).isEqualTo("scalar");
    assertThat(unpackedFiles()).isEqualTo(before);
  }

  private static long unpackedFiles() throws IOException {
    try (var files = Files.list(Path.of(System.getProperty("java.io.tmpdir")))) {
      return files.filter(file -> file.getFileName().toString().startsWith("libsparkfp4-")).count();
    }
  }

  @Test
  void overrideIsLoaded() throws Exception {
    System.setProperty(NativeLibrary.PATH_KEY, copyLibrary(library()).toString());

    assertThat(tier("scalar")).isEqualTo("scalar");
  }

  @Test
  void overrideNeverFallsBack() throws Exception {
    Path missing = folder.resolve("missing.so");
    System.setProperty(NativeLibrary.PATH_KEY, missing.toString());

    for (String tier : List.of("auto", "scalar")) {
      assertThatThrownBy(() -> tier(tier)).isInstanceOf(IllegalStateException.class)
          .hasMessage("Cannot load the native kernels: spark.fp4.native.path names no file: " + missing);
    }

    assertThat(tier("java")).isEqualTo("java");
  }

  @Test
  void whatIsNoLibraryIsNamed() throws Exception {
    Path text = Files.writeString(folder.resolve("text.so"), "no library");
    System.setProperty(NativeLibrary.PATH_KEY, text.toString());

    assertThatThrownBy(() -> tier("auto")).isInstanceOf(IllegalStateException.class)
        .hasMessageStartingWith("Cannot load the native kernels " + text + " on " + arch + ": ")
        .hasMessageEndingWith("(spark.fp4.native.path names another file, spark.fp4.cpu.tier=java does without)");
  }

  @Test
  void otherVersionIsRefused() throws Exception {
    byte[] bytes = library();
    byte[] version = (version() + "\0").getBytes(StandardCharsets.US_ASCII);
    int at = indexOf(bytes, version);
    bytes[at] = '9';
    Path other = copyLibrary(bytes);
    System.setProperty(NativeLibrary.PATH_KEY, other.toString());

    assertThatThrownBy(() -> tier("auto")).isInstanceOf(IllegalStateException.class)
        .hasMessage("Cannot use the native kernels " + other + ": they are of version 9" + version().substring(1)
            + ", this jar is of version " + version());
  }

  private static int indexOf(byte[] bytes, byte[] part) {
    int at = 0;
    while (!Arrays.equals(bytes, at, at + part.length, part, 0, part.length)) {
      at++;
    }

    return at;
  }

  @Test
  void withoutLibraryJavaServes() throws Exception {
    System.setProperty("os.arch", "riscv64");

    assertThat(tier("auto")).isEqualTo("java");
    assertThatThrownBy(() -> tier("avx2")).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid kernel tier: avx2, available here: auto, java "
            + "(the class path has no riscv64/Linux/libsparkfp4.so)");
  }

  @Test
  void unknownTierIsRefused() {
    assertThatThrownBy(() -> tier("sse9")).isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Invalid kernel tier: sse9, available here: auto, java");
  }

  @Test
  void prefetchTakesAnyRange() {
    NativeMemory memory = NativeMemory.of(new byte[10_000], 3);

    for (int bytes : new int[] {0, 1, 5000, 10_000}) {
      NativeLibrary.prefetch(memory.address(), bytes);
    }

    assertThat(memory.bytes()).containsOnly(0);
  }

  @Test
  void mappingThatWasLetGoReadsTheFileAgain(@TempDir Path folder) throws IOException {
    byte[] content = new byte[20_000];
    new Random(1).nextBytes(content);
    Path file = Files.write(folder.resolve("mapped"), content);
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      // not at the start of a page
      MappedByteBuffer mapping = channel.map(FileChannel.MapMode.READ_ONLY, 5000, 15_000);
      byte[] read = new byte[15_000];
      for (int turn = 0; turn < 2; turn++) {
        mapping.get(0, read);
        assertThat(read).isEqualTo(Arrays.copyOfRange(content, 5000, 20_000));
        NativeLibrary.letGo(MemoryUtil.getByteBufferAddress(mapping), mapping.capacity());
      }
    }
  }

  /** RHEL 8 and its kin have glibc 2.28. */
  @Test
  void needsNoGlibcAbove228() throws Exception {
    Path copy = copyLibrary(library());
    Process readelf;
    try {
      readelf = new ProcessBuilder("readelf", "--wide", "--version-info", "--dynamic", copy.toString())
          .redirectErrorStream(true).start();
    } catch (IOException e) {
      Assumptions.abort("no readelf here");
      return;
    }

    String output = new String(readelf.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

    assertThat(readelf.waitFor()).as(output).isZero();
    List<String> minors =
        Pattern.compile("GLIBC_2\\.(\\d+)").matcher(output).results().map(found -> found.group(1)).toList();
    assertThat(minors).isNotEmpty().allSatisfy(minor -> assertThat(Integer.parseInt(minor)).isLessThanOrEqualTo(28));
    assertThat(Pattern.compile("Shared library: \\[([^]]+)]").matcher(output).results()
        .map(found -> found.group(1))).isSubsetOf("libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1");
  }

  /** What {@code Nvfp4Kernels.forTier(tier).tier()} gives where nothing is loaded yet. */
  private static String tier(String tier) throws Exception {
    ClassLoader fresh = new FreshKernels();
    try {
      Class<?> kernels = fresh.loadClass(Nvfp4Kernels.class.getName());
      Object kernel = kernels.getMethod("forTier", String.class).invoke(null, tier);
      return (String) fresh.loadClass(Nvfp4Kernel.class.getName()).getMethod("tier").invoke(kernel);
    } catch (InvocationTargetException e) {
      throw (Exception) e.getCause();
    }
  }

  /** Defines the package's classes anew, and shares all others. */
  private static final class FreshKernels extends ClassLoader {
    private FreshKernels() {
      super(NativeLibraryTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!name.startsWith(NativeLibrary.class.getPackageName() + ".")) {
        return super.loadClass(name, resolve);
      }

      synchronized (getClassLoadingLock(name)) {
        Class<?> loaded = findLoadedClass(name);
        return loaded == null ? define(name) : loaded;
      }
    }

    private Class<?> define(String name) throws ClassNotFoundException {
      try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
        byte[] bytes = in.readAllBytes();
        return defineClass(name, bytes, 0, bytes.length);
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  private static void assumeLibrary() {
    Assumptions.assumeTrue(NativeLibrary.absence().isEmpty(), "this build has no native kernels");
  }

  private static byte[] library() throws IOException {
    assumeLibrary();
    try (InputStream in = NativeLibrary.class.getClassLoader().getResourceAsStream(LIBRARY)) {
      return in.readAllBytes();
    }
  }

  private Path copyLibrary(byte[] bytes) throws IOException {
    return Files.write(folder.resolve("copy.so"), bytes);
  }

  private static String version() throws IOException {
    Properties properties = new Properties();
    try (InputStream in = NativeLibrary.class.getResourceAsStream("version.properties")) {
      properties.load(in);
    }

    return properties.getProperty("version");
  }
}
