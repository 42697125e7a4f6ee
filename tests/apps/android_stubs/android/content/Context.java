package android.content;

import android.content.res.AssetManager;

/** Stands for Android's: it has assets. */
public class Context {
  private final AssetManager assets;

  public Context(AssetManager assets) {
    this.assets = assets;
  }

  public AssetManager getAssets() {
    return assets;
  }
}
