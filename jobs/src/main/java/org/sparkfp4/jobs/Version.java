package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** The version that was built, for {@code --version}, model cards and reports. */
public final class Version implements IVersionProvider {
  private static final Properties BUILT = load();

  /** Version of Spark FP4, such as {@code 0.1.0}. */
  public static String current() {
    return BUILT.getProperty("version");
  }

  /** Product and version, as manifests, model cards and reports name them. */
  static String product() {
    return "Spark FP4 " + current();
  }

  @Override
  public String[] getVersion() {
    return new String[] {"Spark FP4 " + current() + " (Spark " + BUILT.getProperty("spark") + ")"};
  }

  private static Properties load() {
    Properties properties = new Properties();
    try (InputStream in = Version.class.getResourceAsStream("version.properties")) {
      properties.load(in);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read version.properties of this jar", e);
    }

    return properties;
  }
}
