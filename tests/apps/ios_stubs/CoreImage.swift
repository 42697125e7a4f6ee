@_exported import CoreGraphics
@_exported import CoreVideo
public enum CGImagePropertyOrientation: UInt32, Sendable { case up = 1, right = 6 }
open class CIImage: NSObject, @unchecked Sendable {
    public init(cvPixelBuffer: CVPixelBuffer) {}
    open func oriented(_ orientation: CGImagePropertyOrientation) -> CIImage { self }
    open var extent: CGRect { .zero }
}
open class CIContext: NSObject, @unchecked Sendable {
    public override init() {}
    open func createCGImage(_ image: CIImage, from rect: CGRect) -> CGImage? { nil }
}
